package springboot

import "errors"

// Bounds on what one process can make this package read, hold and compute. An
// application in real life stays below a tenth of each. What is beyond one is
// said once, without its text, and everything else continues.
const (
	// Bytes and numbers of files.
	maxConfigFile = 1 << 20 // bytes of one config file, uncompressed
	maxConfigSum  = 4 << 20 // of all of them
	maxConfigDocs = 256     // documents in all config files
	maxLines      = 50_000  // of one .properties file
	maxArgFile    = 256 << 10
	maxManifest   = 256 << 10
	maxListing    = 10_000 // entries of a directory
	maxOpens      = 5_000  // files and directories opened

	// The command line.
	maxWords     = 20_000 // argument files expanded
	maxWordBytes = 2 << 20
	maxClassPath = 1_000

	// Properties of the config files together, and of each other source.
	maxKeys      = 20_000
	maxKey       = 512     // bytes of one name
	maxKeyBytes  = 2 << 20 // of all names
	maxElements  = 1_000   // of a list
	maxJSON      = 256 << 10
	maxYAMLNodes = 50_000 // once aliases are followed
	maxYAMLDepth = 200    // cycles of aliases included
	maxYAMLMarks = 50_000 // what can begin a node, see countMarks

	// What the config files lead to.
	maxImports    = 256
	maxNames      = 16 // spring.config.name
	maxProfiles   = 32
	maxGroups     = 256  // profile groups
	maxExpression = 1024 // bytes of a profile expression
	maxSteps      = 20_000
	maxMissing    = 48

	// Archives: of all jars together.
	maxDirectory     = 16 << 20 // bytes of central directories
	maxEntries       = 60_000   // entries kept
	maxEntryNames    = 6 << 20  // bytes of their names
	maxNestedDeflate = 12 << 20 // a nested jar that is compressed is held in memory
	maxOpenJars      = 512
)

// Sentinel errors of this package.
var (
	// ErrTooLarge is something beyond the bound that is read for its kind.
	ErrTooLarge = errors.New("larger than what is read")
	// ErrNotRegular is a fifo, a device or a directory in the place of a file.
	ErrNotRegular = errors.New("not a regular file")
)

// quota is what is left of the properties that one source, or all config files
// together, may have.
type quota struct {
	keys, bytes int
	over        bool
}

func newQuota() *quota { return &quota{keys: maxKeys, bytes: maxKeyBytes} }

// take says whether there is room for another name.
func (q *quota) take(name string) bool {
	if len(name) > maxKey || q.keys < 1 || q.bytes < len(name) {
		q.over = true
	}
	if q.over {
		return false
	}
	q.keys--
	q.bytes -= len(name)
	return true
}

func (q *quota) err() error {
	if q.over {
		return errProperty
	}
	return nil
}

// errProperty is too many properties, or one with too long a name.
var errProperty = tooLarge("properties beyond 20,000, 2 MiB of names, or 512 bytes of one name")

// tooLarge is ErrTooLarge with what is.
func tooLarge(what string) error { return largeError(what) }

type largeError string

func (e largeError) Error() string { return ErrTooLarge.Error() + ": " + string(e) }
func (e largeError) Unwrap() error { return ErrTooLarge }
