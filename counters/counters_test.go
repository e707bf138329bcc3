package counters

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBucketsHaveTheirBounds: each bound belongs to its bucket, and longer durations to the next.
func TestBucketsHaveTheirBounds(t *testing.T) {
	require.Zero(t, BucketOf(-1))
	require.Zero(t, BucketOf(0))
	for i := range Buckets - 1 {
		require.Equal(t, i, BucketOf(Bound(i)))
		require.Equal(t, i+1, BucketOf(Bound(i)+1))
	}
	require.Equal(t, Buckets-1, BucketOf(1<<62))
	require.Greater(t, Bound(Buckets-2), 17*time.Second)
}

// TestOpsHaveEachKind: All yields, and Add adds, each field.
func TestOpsHaveEachKind(t *testing.T) {
	var o Ops
	fields := reflect.ValueOf(&o).Elem()
	var tags []string
	for i := range fields.NumField() {
		tag, _, _ := strings.Cut(fields.Type().Field(i).Tag.Get("json"), ",")
		tags = append(tags, tag)
	}
	require.Equal(t, tags, kinds[:], "kinds, in ops.go, has the names of the fields in JSON, in their order; Ops.kinds has the fields")
	for i := range fields.NumField() {
		fields.Field(i).Set(reflect.ValueOf(Traffic{Messages: uint64(i + 1), Octets: uint64(100 * (i + 1))}))
	}
	sum := o
	sum.Add(&o)
	i := 0
	for kind, n := range sum.All {
		require.NotEmpty(t, kind)
		require.Equal(t, Traffic{Messages: uint64(2 * (i + 1)), Octets: uint64(200 * (i + 1))}, *n, kind)
		i++
	}
	require.Equal(t, fields.NumField(), i)
	for range sum.All {
		break
	}
}

// TestSumsOfQPs: Add and AddNow together add each field except Path.
func TestSumsOfQPs(t *testing.T) {
	var one QP
	v := reflect.ValueOf(&one).Elem()
	fill(v)
	sum := QP{Path: one.Path}
	sum.Add(&one)
	sum.AddNow(&one)
	require.Equal(t, one, sum)
}

// TestSumsOfWaitsDoNotGoBack: a sum stays at the longest Duration when it would be longer.
func TestSumsOfWaitsDoNotGoBack(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	sum := QP{ReadWaitTime: most - time.Hour}
	sum.Add(&QP{ReadWaitTime: time.Hour - 1})
	require.Equal(t, most-1, sum.ReadWaitTime)
	for range 2 {
		sum.Add(&QP{ReadWaitTime: time.Hour})
		require.Equal(t, most, sum.ReadWaitTime)
	}
}

// fill sets each number in a struct.
func fill(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case v.CanUint():
		v.SetUint(3)
	case v.CanInt():
		v.SetInt(5)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{"": true}
	for e := range End(Ends) {
		require.False(t, seen[e.String()], "%d", e)
		seen[e.String()] = true
	}
	for c := range Cause(Causes) {
		require.False(t, seen[c.String()], "%d", c)
		seen[c.String()] = true
	}
}
