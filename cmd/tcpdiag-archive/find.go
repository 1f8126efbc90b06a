package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
)

const (
	// maxScanned bounds how many names of a bucket one question reads: of S3 in 200 requests.
	maxScanned = 200_000
	// maxClusters bounds how many times a day is asked for.
	maxClusters = 1000
	// maxDays bounds over how many days a list goes.
	maxDays = 400
)

// found is a recording in a bucket, by its key.
type found struct {
	Key       string            `json:"key"`
	Cluster   string            `json:"cluster"`
	Day       string            `json:"day"`
	Namespace string            `json:"namespace"`
	Pod       string            `json:"pod"`
	ID        string            `json:"id"`
	Bytes     int64             `json:"bytes"`
	Began     time.Time         `json:"began"`
	About     map[string]string `json:"about,omitempty"` // its metadata
}

// parseKey is false for what is no recording's: an archiver writes keys of safe characters alone.
func parseKey(key string) (found, bool) {
	name, ours := strings.CutSuffix(key, records.Suffix)
	parts := strings.Split(name, "/")
	if !ours || len(parts) != 5 || slices.ContainsFunc(parts, func(part string) bool { return records.KeyPart(part) != part }) {
		return found{}, false
	}
	id := parts[4]
	if i := strings.LastIndexByte(id, '-'); !incident.IsID(id) && i > 0 { // with a part of its checksum
		id = id[:i]
	}
	if !incident.IsID(id) {
		return found{}, false
	}
	at, err := records.BeganAt(id)
	if err != nil {
		return found{}, false
	}
	return found{Key: key, Cluster: parts[0], Day: parts[1], Namespace: parts[2], Pod: parts[3], ID: id, Began: at}, true
}

// archive is a bucket that is read.
type archive struct {
	bucket  *blob.Bucket
	url     *url.URL
	scanned int
}

func openArchive(ctx context.Context, text string) (*archive, error) {
	if text == "" {
		return nil, usagef("give --bucket")
	}
	u, err := bucketURL(text)
	if err != nil {
		return nil, err
	}
	b, err := openBucket(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("--bucket: %s", inWords(u, err))
	}
	return &archive{bucket: b, url: u}, nil
}

// inWords is an error of a bucket that is read, in a line.
func inWords(u *url.URL, err error) string {
	if isMissing(err) {
		return errNoBucket.Error() + ": " + locationOf(u, "")
	}
	return oneLine(explained(err).Error())
}

func (a *archive) close() { _ = a.bucket.Close() }

var (
	errMany     = fmt.Errorf("more than %d names: give --cluster, and for a list --namespace or a shorter --since, for a report the key", maxScanned)
	errClusters = fmt.Errorf("more than %d clusters: give --cluster", maxClusters)
)

// each hands out what is below a prefix; of folders only the names.
func (a *archive) each(ctx context.Context, prefix, delimiter string, see func(*blob.ListObject) error) error {
	list := a.bucket.List(&blob.ListOptions{Prefix: prefix, Delimiter: delimiter})
	for {
		o, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the bucket cannot be listed: %s", inWords(a.url, err))
		}
		if a.scanned++; a.scanned > maxScanned {
			return errMany
		}
		if err := see(o); err != nil {
			return err
		}
	}
}

// clusters are the first parts of keys, or the one that was given.
func (a *archive) clusters(ctx context.Context, given string) (out []string, err error) {
	if given != "" {
		return []string{records.KeyPart(given)}, nil
	}
	err = a.each(ctx, "", "/", func(o *blob.ListObject) error {
		name, folder := strings.CutSuffix(o.Key, "/")
		if !o.IsDir || !folder || records.KeyPart(name) != name {
			return nil // a stranger's
		}
		if out = append(out, name); len(out) > maxClusters {
			return errClusters
		}
		return nil
	})
	return out, err
}

// query is what is listed.
type query struct {
	cluster, namespace string
	from, to           time.Time
	most               int
}

// list are the latest first.
func (a *archive) list(ctx context.Context, q query) (out []found, more bool, err error) {
	clusters, err := a.clusters(ctx, q.cluster)
	if err != nil {
		return nil, false, err
	}
	for day := q.to.UTC(); !day.Before(q.from.UTC().Truncate(24 * time.Hour)); day = day.AddDate(0, 0, -1) {
		var of []found
		for _, c := range clusters {
			prefix := path.Join(c, day.Format(records.DayForm)) + "/"
			if q.namespace != "" {
				prefix += records.KeyPart(q.namespace) + "/"
			}
			err := a.each(ctx, prefix, "", func(o *blob.ListObject) error {
				if f, ok := parseKey(o.Key); ok && !f.Began.Before(q.from.Truncate(time.Second)) && !f.Began.After(q.to) {
					f.Bytes = o.Size
					of = append(of, f)
				}
				return nil
			})
			if err != nil {
				return nil, false, err
			}
		}
		slices.SortFunc(of, func(a, b found) int {
			return -cmpTime(a, b)
		})
		if out = append(out, of...); len(out) > q.most {
			return out[:q.most], true, nil
		}
	}
	return out, false, nil
}

func cmpTime(a, b found) int {
	if c := a.Began.Compare(b.Began); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}

// find is the key of an ID, or a key as it is.
func (a *archive) find(ctx context.Context, name, cluster string) (string, error) {
	if _, ok := parseKey(name); ok {
		return name, nil
	}
	if !incident.IsID(name) {
		return "", usagef("%.100q is neither the ID of an incident nor the key of a recording: list has them", name)
	}
	f, _ := parseKey("c/d/n/p/" + name + records.Suffix)
	clusters, err := a.clusters(ctx, cluster)
	if err != nil {
		return "", err
	}
	var keys []string
	for _, c := range clusters {
		err := a.each(ctx, path.Join(c, f.Began.Format(records.DayForm))+"/", "", func(o *blob.ListObject) error {
			if is, ok := parseKey(o.Key); ok && is.ID == name {
				keys = append(keys, o.Key)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	switch len(keys) {
	case 0:
		return "", fmt.Errorf("there is no recording %s in the bucket", name)
	case 1:
		return keys[0], nil
	}
	return "", fmt.Errorf("%d recordings have the ID %s, give one's key: %s", len(keys), name, strings.Join(keys[:min(len(keys), 5)], " "))
}

// read is a whole recording, compared with the checksum in its metadata or else beside it.
func (a *archive) read(ctx context.Context, key string) ([]byte, error) {
	r, err := a.bucket.NewReader(ctx, key, nil)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, fmt.Errorf("%s: there is no such recording", key)
	case err != nil:
		return nil, fmt.Errorf("%s: cannot be read: %s", key, oneLine(explained(err).Error()))
	}
	defer func() { _ = r.Close() }()
	if r.Size() > records.MaxObject {
		return nil, fmt.Errorf("%s: %d bytes, larger than a recording of tcpdiag can be", key, r.Size())
	}
	data, err := io.ReadAll(io.LimitReader(r, records.MaxObject+1))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot be read to its end: %s", key, oneLine(err.Error()))
	}
	if len(data) > records.MaxObject {
		return nil, fmt.Errorf("%s: larger than a recording of tcpdiag can be", key)
	}
	sum := sha256.Sum256(data)
	if want := a.checksum(ctx, key); want != "" && want != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%s: damaged or cut off: its %d bytes have another checksum than was stored with it", key, len(data))
	}
	return data, nil
}

// checksum is "" where there is none.
func (a *archive) checksum(ctx context.Context, key string) string {
	if about, err := a.bucket.Attributes(ctx, key); err == nil && about.Metadata["sha256"] != "" {
		return about.Metadata["sha256"]
	}
	r, err := a.bucket.NewReader(ctx, key+records.SumSuffix, nil)
	if err != nil {
		return ""
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(io.LimitReader(r, 1024))
	if err != nil {
		return ""
	}
	sum, _, _ := strings.Cut(string(text), " ")
	return sum
}

// story tells a recording that anybody may have put into the bucket.
func (a *archive) story(ctx context.Context, key string) (*story.Story, error) {
	data, err := a.read(ctx, key)
	if err != nil {
		return nil, err
	}
	s, err := story.Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %s", key, oneLine(err.Error()))
	}
	s.Summary.CutOff() // nobody writes what is in a bucket any more
	if f, ok := parseKey(key); ok {
		s.Summary.ID = f.ID
	}
	return s, nil
}
