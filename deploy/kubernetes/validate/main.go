// Command validate reads manifests from standard input and holds them against
// the API server's own validation, which knows more than the types: names,
// lengths, ports, what excludes what. Kinds that are not Kubernetes' own are
// skipped; the tests of the folder above decode them.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // registers itself
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // registers itself
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

func main() {
	checked, err := validate(os.Stdin)
	fmt.Println(checked, "objects are valid")
	if err == nil && checked == 0 {
		err = errors.New("nothing to validate on standard input")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func validate(r io.Reader) (checked int, err error) {
	var all []error
	for docs := yaml.NewYAMLReader(bufio.NewReader(r)); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return checked, errors.Join(all...)
		}
		if err != nil {
			return checked, err
		}
		object, kind, err := legacyscheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if err != nil {
			continue // nothing but comments, or another's kind
		}
		legacyscheme.Scheme.Default(object)
		errs, known := validateObject(object)
		switch {
		case len(errs) > 0:
			all = append(all, fmt.Errorf("%s: %w", kind.Kind, errs.ToAggregate()))
		case known:
			checked++
		}
	}
}

// validateObject is known only for kinds that can be wrong in themselves.
func validateObject(o runtime.Object) (errs field.ErrorList, known bool) {
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		in := internal(o, &apps.DaemonSet{})
		return appsvalidation.ValidateDaemonSet(in, pod.GetValidationOptionsFromPodTemplate(&in.Spec.Template, nil)), true
	case *appsv1.Deployment:
		in := internal(o, &apps.Deployment{})
		return appsvalidation.ValidateDeployment(in, pod.GetValidationOptionsFromPodTemplate(&in.Spec.Template, nil)), true
	case *corev1.ConfigMap:
		return corevalidation.ValidateConfigMap(internal(o, &core.ConfigMap{})), true
	case *corev1.Namespace:
		return corevalidation.ValidateNamespace(internal(o, &core.Namespace{})), true
	case *corev1.ServiceAccount:
		return corevalidation.ValidateServiceAccount(internal(o, &core.ServiceAccount{})), true
	}
	return nil, false
}

// internal is the version that the API server works with.
func internal[T runtime.Object](o runtime.Object, into T) T {
	if err := legacyscheme.Scheme.Convert(o, into, nil); err != nil {
		panic(err) // both types are registered
	}
	return into
}
