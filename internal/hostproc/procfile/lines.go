package procfile

import "bytes"

// LineOf is the file from the first line with a prefix on.
func LineOf(file, prefix []byte) []byte {
	for !bytes.HasPrefix(file, prefix) {
		next := bytes.IndexByte(file, '\n')
		if next < 0 {
			return nil
		}
		file = file[next+1:]
	}
	return file
}

// ValueOf is the value of a line "key<white space>value" of a status file.
func ValueOf(data, key []byte) ([]byte, bool) {
	line := LineOf(data, key)
	if line == nil {
		return nil, false
	}
	value := line[len(key):]
	if end := bytes.IndexByte(value, '\n'); end >= 0 {
		value = value[:end]
	}
	return bytes.TrimSpace(value), true
}
