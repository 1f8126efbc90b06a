package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/fileblob"  // file://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
	"gocloud.dev/gcerrors"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
)

// bucketURL is checked before anything is opened: some stores are asked for that.
func bucketURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) || u.User != nil {
		return nil, usagef("--bucket: give a URL such as s3://NAME?region=REGION, gs://NAME, azblob://CONTAINER or file:///FOLDER, without a password")
	}
	if u.Scheme != "file" && u.Host == "" {
		return nil, usagef("--bucket: %s has no name of a bucket: %s://NAME", text, u.Scheme)
	}
	if u.Scheme == "file" && (u.Host != "" && u.Host != "." || u.Path == "") {
		return nil, usagef("--bucket: %s names no folder: file:///FOLDER, with three slashes", text)
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

// openBucket opens one. The kits of two clouds say in their own words on a terminal, one of them on
// the standard output, what the error says then: they get another one.
func openBucket(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // stays open: a kit keeps it
	if err != nil {
		return nil, err
	}
	stdout, stderr := os.Stdout, os.Stderr
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	os.Stdout, os.Stderr = null, null
	return blob.OpenBucket(ctx, u.String())
}

// store is a bucket that is opened when it is first needed.
type store struct {
	url    *url.URL
	bucket *blob.Bucket
}

func (s *store) open(ctx context.Context) (*blob.Bucket, error) {
	if s.bucket == nil {
		b, err := openBucket(ctx, s.url)
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
func (s *store) put(ctx context.Context, m *records.Manifest, data []byte) (outcome string, err error) {
	defer func() {
		if isMissing(err) { // the libraries' own words fill a page
			err = fmt.Errorf("%w: %s: make it, an archiver has no right to; recordings wait in the spool", errNoBucket, locationOf(s.url, ""))
		} else if err != nil {
			err = explained(err)
		}
	}()
	b, err := s.open(ctx)
	if err != nil {
		return "", err
	}
	outcome, err = write(ctx, b, m.Key, data, m.Metadata(), "application/x-ndjson")
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
			key = key[:len(key)-len(records.Suffix)] + "-" + m.SHA256[:12] + records.Suffix
			if outcome, err = write(ctx, b, key, data, m.Metadata(), "application/x-ndjson"); err != nil {
				return "", err
			}
		}
	}
	sum := fmt.Appendf(nil, "%s  %s\n", m.SHA256, path.Base(key))
	if _, err := write(ctx, b, key+records.SumSuffix, sum, nil, "text/plain; charset=utf-8"); err != nil {
		return "", err
	}
	return outcome, nil
}

func isMissing(err error) bool {
	return gcerrors.Code(err) == gcerrors.NotFound || errors.Is(err, fs.ErrNotExist)
}

// explained is an error of a store with what it comes to, before the words of its kit.
func explained(err error) error {
	if errors.Is(err, errForGood) {
		return err
	}
	for _, without := range []string{
		"failed to refresh cached credentials", "could not find default credentials", "private key should be a PEM", "failed to acquire a token", // of S3, twice Google, Azure
	} {
		if strings.Contains(err.Error(), without) {
			return fmt.Errorf("there are no credentials for it: %w", err)
		}
	}
	switch {
	case strings.Contains(err.Error(), "AccountName is required"):
		return fmt.Errorf("AZURE_STORAGE_ACCOUNT is not set: %w", err)
	case gcerrors.Code(err) == gcerrors.PermissionDenied, statusOf(err) == http.StatusForbidden, statusOf(err) == http.StatusUnauthorized:
		return fmt.Errorf("these credentials may not do that: %w", err)
	}
	return err
}

// identified reports, before anything is to be written, that there are no credentials for S3.
func identified(ctx context.Context, b *blob.Bucket) error {
	var client *awss3.Client
	if !b.As(&client) {
		return nil
	}
	_, err := client.Options().Credentials.Retrieve(ctx)
	return err
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
		BufferSize: records.MaxObject, MaxConcurrency: 1, // in one piece, which needs one right
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
