// Reads manifests of Kubernetes from the standard input into the types of its API, and refuses fields that these do not
// have and values of another type: what a schema validator does, without a network. Prints a line for each manifest;
// kinds of the Prometheus operator are only counted.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

var kinds = map[string]func() any{
	"v1 ConfigMap":                            func() any { return &core.ConfigMap{} },
	"v1 Secret":                               func() any { return &core.Secret{} },
	"v1 Service":                              func() any { return &core.Service{} },
	"v1 ServiceAccount":                       func() any { return &core.ServiceAccount{} },
	"apps/v1 StatefulSet":                     func() any { return &apps.StatefulSet{} },
	"networking.k8s.io/v1 NetworkPolicy":      func() any { return &networking.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":           func() any { return &policy.PodDisruptionBudget{} },
	"monitoring.coreos.com/v1 ServiceMonitor": nil,
	"monitoring.coreos.com/v1 PrometheusRule": nil,
}

func main() {
	reader := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	count, failed := 0, false
	for {
		text, err := reader.Read()
		if err == io.EOF {
			break
		}
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := strict.Unmarshal(text, &head); err != nil {
			fmt.Println(err)
			failed = true
			continue
		}
		if head.Kind == "" {
			continue
		}
		name := head.APIVersion + " " + head.Kind
		count++
		make, known := kinds[name]
		if !known {
			fmt.Println(name + ": unknown kind")
			failed = true
		} else if make != nil {
			if err := strict.UnmarshalStrict(text, make()); err != nil {
				fmt.Println(name+":", err)
				failed = true
			}
		}
	}
	fmt.Println(count, "manifests")
	if failed || count == 0 {
		os.Exit(1)
	}
}
