package lockorder

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrderHasEachRankOnce: the types are declared in lock order, so that their comments can be read in that order.
func TestOrderHasEachRankOnce(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "order.go", nil, 0)
	require.NoError(t, err)
	var declared []string
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok && s.Name.IsExported() && s.Name.Name != "Rank" {
			declared = append(declared, s.Name.Name)
		}
		return true
	})
	var ordered []string
	for _, r := range order {
		ordered = append(ordered, reflect.TypeOf(r).Name())
	}
	require.Equal(t, declared, ordered)
}

// TestMutexIsLocker: a sync.Cond takes it.
func TestMutexIsLocker(t *testing.T) {
	var mu Mutex[CQ]
	c := sync.NewCond(&mu)
	done := false
	go func() {
		mu.Lock()
		done = true
		mu.Unlock()
		c.Signal()
	}()
	mu.Lock()
	for !done {
		c.Wait()
	}
	require.False(t, mu.TryLock())
	mu.Unlock()
	require.True(t, mu.TryLock())
	mu.Unlock()
}
