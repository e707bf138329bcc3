//go:build !unix

package main

import "errors"

func lowerPriority() error { return errors.ErrUnsupported }
