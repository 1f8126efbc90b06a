package springboot

// archives is what is left of what may be read and held of all jars together: a
// class path can name one jar a thousand times, and a jar can hold thousands.
type archives struct {
	directory int64 // bytes of central directories
	inflated  int64 // bytes of nested jars that are compressed
	entries   int   // entries kept
	names     int   // bytes of their names
}

func newArchives() archives {
	return archives{directory: maxDirectory, inflated: maxNestedDeflate, entries: maxEntries, names: maxEntryNames}
}

// errJars is a class path whose jars hold more than is read.
var errJars = tooLarge("jars beyond 512 open, 16 MiB of directories, 60,000 entries or 12 MiB of compressed jars")
