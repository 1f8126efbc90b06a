package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/fileblob"  // file://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"
)

// bucketURL is checked before anything is opened: some stores are asked for that.
func bucketURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) || u.User != nil {
		return nil, usagef("--bucket: give a URL such as s3://NAME?region=REGION, gs://NAME, azblob://CONTAINER or file:///FOLDER, without a password")
	}
	if u.Scheme == "file" { // a folder is often another file system than /tmp
		q := u.Query()
		q.Set("no_tmp_dir", "true")
		u.RawQuery = q.Encode()
	}
	if q := u.Query(); u.Scheme == "s3" && !q.Has(validation) { // a recording has a checksum of its own
		q.Set(validation, "when_required")
		u.RawQuery = q.Encode()
	}
	return u, nil
}

// validation is of the SDK, which writes a line to the terminal for each answer of a server without checksums.
const validation = "response_checksum_validation"

// locationOf is where an object is, for people: without what the URL has besides.
func locationOf(u *url.URL, key string) string {
	if u == nil {
		return ""
	}
	return u.Scheme + "://" + path.Join(u.Host, u.Path, key)
}

// store is a bucket that is opened when it is first needed.
type store struct {
	url    *url.URL
	bucket *blob.Bucket
}

func (s *store) open(ctx context.Context) (*blob.Bucket, error) {
	if s.bucket == nil {
		b, err := blob.OpenBucket(ctx, s.url.String())
		if err != nil {
			return nil, err
		}
		s.bucket = b
	}
	return s.bucket, nil
}

func (s *store) close() {
	if s.bucket != nil {
		_ = s.bucket.Close()
	}
}

// put writes a recording and its checksum beside it. To write is all that it has to be
// allowed: that there is one of this key is the answer of a write on condition. Only then
// it asks for the checksum of what is there; who may not takes it for present.
func (s *store) put(ctx context.Context, m *manifest, data []byte) (outcome string, err error) {
	defer func() {
		if gcerrors.Code(err) == gcerrors.NotFound || errors.Is(err, fs.ErrNotExist) { // the libraries' own words fill a page
			err = fmt.Errorf("%w: %s: make it, an archiver has no right to; recordings wait in the spool", errNoBucket, locationOf(s.url, ""))
		}
	}()
	b, err := s.open(ctx)
	if err != nil {
		return "", err
	}
	outcome, err = write(ctx, b, m.Key, data, m.metadata(), "application/x-ndjson")
	if err != nil {
		return "", err
	}
	key := m.Key
	if outcome == outcomePresent {
		same, known := isSame(ctx, b, key, m.SHA256)
		if !known {
			return outcomePresent, nil
		}
		if !same { // another machine of the same name and cluster: both are kept
			key = key[:len(key)-len(suffix)] + "-" + m.SHA256[:12] + suffix
			if outcome, err = write(ctx, b, key, data, m.metadata(), "application/x-ndjson"); err != nil {
				return "", err
			}
		}
	}
	sum := fmt.Appendf(nil, "%s  %s\n", m.SHA256, path.Base(key))
	if _, err := write(ctx, b, key+sumSuffix, sum, nil, "text/plain; charset=utf-8"); err != nil {
		return "", err
	}
	return outcome, nil
}

func isSame(ctx context.Context, b *blob.Bucket, key, sum string) (same, known bool) {
	a, err := b.Attributes(ctx, key)
	if err != nil || a.Metadata["sha256"] == "" {
		return false, false
	}
	return a.Metadata["sha256"] == sum, true
}

// write makes an object of a key that has none.
func write(ctx context.Context, b *blob.Bucket, key string, data []byte, about map[string]string, kind string) (string, error) {
	o := &blob.WriterOptions{
		ContentType: kind, Metadata: about, IfNotExist: true,
		BufferSize: maxObject, MaxConcurrency: 1, // in one piece, which needs one right
	}
	// Upload and without ContentMD5, since a Writer of azureblob panics where the store refuses
	// (gocloud.dev v0.47.0, Writer.Close). The SHA-256 is in the metadata.
	err := b.Upload(ctx, key, bytes.NewReader(data), o)
	if gcerrors.Code(err) == gcerrors.Unimplemented { // a store without conditions: the same is written over it
		o.IfNotExist = false
		err = b.Upload(ctx, key, bytes.NewReader(data), o)
	}
	switch {
	case err == nil:
		return outcomeStored, nil
	case gcerrors.Code(err) == gcerrors.FailedPrecondition, gcerrors.Code(err) == gcerrors.AlreadyExists, statusOf(err) == http.StatusPreconditionFailed:
		return outcomePresent, nil
	case gcerrors.Code(err) == gcerrors.InvalidArgument:
		return "", errors.Join(errForGood, err)
	}
	return "", err
}

// statusOf is that of a store's answer whose words its kit cannot read, 0 where there is none.
func statusOf(err error) int {
	var answer interface{ HTTPStatusCode() int }
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.HTTPStatusCode()
}

var (
	// errForGood: another attempt would end in the same way.
	errForGood = errors.New("refused for good")
	// errNoBucket: it was not made yet, or is gone.
	errNoBucket = errors.New("there is no such bucket, container or folder")
)
