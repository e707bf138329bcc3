package main

import (
	"slices"
	"sync"
)

// findings collects errors. Many goroutines may use it.
type findings struct {
	mu   sync.Mutex
	list []string
}

func (f *findings) add(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, what)
}

func (f *findings) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.list)
}
