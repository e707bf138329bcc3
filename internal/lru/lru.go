// Package lru is a map of bounded size.
package lru

import (
	"container/list"
	"iter"
)

// A Map is a map that forgets the least recently used entry when it is full. Make one with New.
type Map[K comparable, V any] struct {
	most  int
	order *list.List // of entry, the most recently used one in front
	at    map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty Map of at most most entries. most must be positive.
func New[K comparable, V any](most int) *Map[K, V] {
	return &Map[K, V]{most: most, order: list.New(), at: make(map[K]*list.Element)}
}

// Get returns an entry, which then becomes the most recently used one.
func (m *Map[K, V]) Get(k K) (v V, ok bool) {
	e := m.at[k]
	if e == nil {
		return v, false
	}
	m.order.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

// Put adds an entry, or replaces it.
func (m *Map[K, V]) Put(k K, v V) {
	if e := m.at[k]; e != nil {
		e.Value = entry[K, V]{k, v}
		m.order.MoveToFront(e)
		return
	}
	if m.Full() {
		oldest, _ := m.Oldest()
		m.Delete(oldest)
	}
	m.at[k] = m.order.PushFront(entry[K, V]{k, v})
}

// Delete forgets an entry, if there is one.
func (m *Map[K, V]) Delete(k K) {
	if e := m.at[k]; e != nil {
		delete(m.at, k)
		m.order.Remove(e)
	}
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.at) }

// Full reports whether another entry would replace the oldest one.
func (m *Map[K, V]) Full() bool { return len(m.at) >= m.most }

// Oldest returns the least recently used entry. The Map must not be empty.
func (m *Map[K, V]) Oldest() (K, V) {
	e := m.order.Back().Value.(entry[K, V])
	return e.key, e.value
}

// All yields all entries, the most recently used one first. The loop body may delete the
// current entry.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for e := m.order.Front(); e != nil; {
			next, at := e.Next(), e.Value.(entry[K, V])
			if !yield(at.key, at.value) {
				return
			}
			e = next
		}
	}
}
