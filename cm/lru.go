package cm

import "container/list"

// An lru is a map of bounded size, which forgets the least recently used entry.
type lru[K comparable, V any] struct {
	most  int
	order *list.List // of lruEntry, the most recently used one in front
	at    map[K]*list.Element
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](most int) *lru[K, V] {
	return &lru[K, V]{most: most, order: list.New(), at: make(map[K]*list.Element)}
}

// get finds an entry, which is then the most recently used one.
func (l *lru[K, V]) get(k K) (v V, ok bool) {
	e := l.at[k]
	if e == nil {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(lruEntry[K, V]).value, true
}

// put adds an entry, or replaces it.
func (l *lru[K, V]) put(k K, v V) {
	if e := l.at[k]; e != nil {
		e.Value = lruEntry[K, V]{k, v}
		l.order.MoveToFront(e)
		return
	}
	if l.full() {
		last := l.order.Back()
		delete(l.at, last.Value.(lruEntry[K, V]).key)
		l.order.Remove(last)
	}
	l.at[k] = l.order.PushFront(lruEntry[K, V]{k, v})
}

func (l *lru[K, V]) len() int   { return len(l.at) }
func (l *lru[K, V]) full() bool { return len(l.at) >= l.most }

// oldest returns the value of the least recently used entry, of which there must be one.
func (l *lru[K, V]) oldest() V { return l.order.Back().Value.(lruEntry[K, V]).value }
