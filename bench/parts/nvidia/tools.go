//go:build tools

// Package tools names the programs that are built from this module, so that `go mod tidy` keeps
// what they need.
package tools

import (
	_ "github.com/NVIDIA/k8s-device-plugin/cmd/gpu-feature-discovery"
	_ "github.com/NVIDIA/k8s-device-plugin/cmd/nvidia-device-plugin"
)
