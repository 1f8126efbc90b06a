//go:build !linux

package examine

import (
	"io/fs"
	"os"
	"time"
)

// stamp distinguishes a file from its successor; there is no /proc to look through here.
type stamp struct {
	failed string
	denied bool
	folder bool
}

func failedStamp(err error) stamp { return stamp{failed: err.Error()} }

func (s stamp) content() string { return "" }

func stampOf(*os.File) stamp { return stamp{} }

func (s stamp) modifiedAfter(time.Time) bool { return false }

// LinksOf is a folder's number of links, which is not known here.
func LinksOf(fs.FileInfo) uint64 { return 0 }

func sharesRoot(string) bool { return false }
