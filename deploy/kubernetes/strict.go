package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	scraping "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decoder reads manifests into the types of the servers that take them:
// Kubernetes' own and the Prometheus operator's. What these do not know, be it
// a field, a field's type or a field given twice, is an error.
type decoder struct{ serializer *json.Serializer }

func newDecoder() (*decoder, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(core.AddToScheme(scheme), apps.AddToScheme(scheme), autoscaling.AddToScheme(scheme), networking.AddToScheme(scheme), monitoring.AddToScheme(scheme), scraping.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	return &decoder{json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme,
		json.SerializerOptions{Yaml: true, Strict: true})}, nil
}

// decode reads every document of a manifest.
func (d *decoder) decode(manifest []byte) ([]runtime.Object, error) {
	var objects []runtime.Object
	for docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if empty(doc) {
			continue
		}
		object, _, err := d.serializer.Decode(doc, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, firstLines(doc, 12))
		}
		objects = append(objects, object)
	}
}

// empty reports whether a document has nothing but comments.
func empty(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

func firstLines(doc []byte, n int) []byte {
	rest := doc
	for range n {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	return doc[:len(doc)-len(rest)]
}
