//go:build tools

// Package tools names the programs that are built from this module, so that `go mod tidy` keeps
// what they need.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kubelet"
)
