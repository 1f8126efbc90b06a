package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeS3 speaks what of S3's protocol an archiver uses. It has the rights that are set.
type fakeS3 struct {
	*httptest.Server
	mu        sync.Mutex
	gone      bool // the bucket is
	writeOnly bool
	objects   map[string][]byte
	about     map[string]http.Header
	asked     map[string]int // requests by method, those that were refused too
	names     []string       // listed besides, in order
}

func newFakeS3(t *testing.T) *fakeS3 {
	t.Helper()
	f := &fakeS3{objects: make(map[string][]byte), about: make(map[string]http.Header), asked: make(map[string]int)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
	return f
}

func (f *fakeS3) bucket() string {
	return "s3://incidents?region=us-east-1&use_path_style=true&endpoint=" + f.URL
}

func (f *fakeS3) set(change func()) { f.mu.Lock(); defer f.mu.Unlock(); change() }

func (f *fakeS3) keys() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.objects {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s\n\x1b[31mas the test has it</Message></Error>", code, strings.Repeat("long ", 200))
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[r.Method]++
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/incidents"), "/")
	data, there := f.objects[key]
	switch {
	case f.gone:
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		f.objects[key], _ = io.ReadAll(r.Body)
		f.about[key] = r.Header.Clone()
	case f.writeOnly:
		refuse(w, http.StatusForbidden, "AccessDenied")
	case key == "":
		f.list(w, r)
	case !there:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	default:
		for name, value := range f.about[key] {
			if strings.HasPrefix(name, "X-Amz-Meta-") {
				w.Header()[name] = value
			}
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		w.Header().Set("Last-Modified", "Fri, 02 Jan 2026 03:04:05 GMT")
		_, _ = w.Write(data)
	}
}

// list is ListObjectsV2, a thousand names at a time.
func (f *fakeS3) list(w http.ResponseWriter, r *http.Request) {
	type object struct {
		Key          string
		LastModified string
		Size         int
	}
	type folder struct{ Prefix string }
	var out struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []object
		CommonPrefixes        []folder
	}
	q := r.URL.Query()
	prefix, delimiter, after := q.Get("prefix"), q.Get("delimiter"), q.Get("continuation-token")
	var few []string // objects
	for key := range f.objects {
		few = append(few, key)
	}
	slices.Sort(few)
	last := ""
	for key := range merged(from(f.names, prefix, after), from(few, prefix, after)) {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		if len(out.Contents)+len(out.CommonPrefixes) == 1000 {
			out.IsTruncated, out.NextContinuationToken = true, last
			break
		}
		last = key
		if i := strings.Index(key[len(prefix):], delimiter); delimiter != "" && i >= 0 {
			p := key[:len(prefix)+i+1]
			if n := len(out.CommonPrefixes); n == 0 || out.CommonPrefixes[n-1].Prefix != p {
				out.CommonPrefixes = append(out.CommonPrefixes, folder{p})
			}
			continue
		}
		out.Contents = append(out.Contents, object{key, "2026-01-02T03:04:05.000Z", len(f.objects[key])})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(out)
}

// from are the names of an ordered list that may have the prefix, behind one.
func from(names []string, prefix, after string) []string {
	at, there := slices.BinarySearch(names, max(prefix, after))
	if there && after >= prefix {
		at++
	}
	return names[at:]
}

// merged are two ordered lists as one.
func merged(a, b []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(a)+len(b) > 0 {
			from := &a
			if len(a) == 0 || len(b) > 0 && b[0] < a[0] {
				from = &b
			}
			if !yield((*from)[0]) {
				return
			}
			*from = (*from)[1:]
		}
	}
}
