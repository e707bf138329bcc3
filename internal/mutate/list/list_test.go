package list

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// parseAll parses the blocks of the series MPA.
func parseAll(text string) (*List, error) {
	l := &List{None: make(map[string]string)}
	return l, l.parse("MPA", text, make(map[string]bool))
}

func TestParse(t *testing.T) {
	l, err := parseAll("# why\nMPA-1a mpa/x.go TestMPA_1_One\n- a < b\n+ a <= b\n\n\nMPA-2b ddp/y.go rdmap.TestMPA_2_Two\n@ func f\n- return x\n+\n\n" +
		"MPA-3c mpa/x.go iwarp.TestMPA_3_Three\n- a\n+ b\n\nMPA-4 none: there is nothing to change\n")
	require.NoError(t, err)
	require.Equal(t, []Mutation{
		{ID: "MPA-1a", File: "mpa/x.go", Pkg: "mpa", Test: "TestMPA_1_One", Old: "a < b", New: "a <= b"},
		{ID: "MPA-2b", File: "ddp/y.go", Pkg: "rdmap", Test: "TestMPA_2_Two", At: "func f", Old: "return x"},
		{ID: "MPA-3c", File: "mpa/x.go", Pkg: ".", Test: "TestMPA_3_Three", Old: "a", New: "b"},
	}, l.Mutations)
	require.Equal(t, map[string]string{"MPA-4": "there is nothing to change"}, l.None)

	for _, text := range []string{
		"MPA-1 mpa/x.go TestMPA_1_One\n- a\n+ b\n",
		"MPA-1a mpa/x.go\n- a\n+ b\n",
		"MPA-1a mpa/x.go TestMPA_1_One\n- a\n",
		"MPA-1a mpa/x.go TestMPA_1_One\n+ a\n- b\n",
		"MPA-1a mpa/x.go TestMPA_1_One\n- a\n+ b\n\nMPA-1a mpa/x.go TestMPA_1_One\n- c\n+ d\n",
		"MPA-1 none: \n",
		"MPA-1a none: a letter\n",
		"MPA-1 none: once\n\nMPA-1 none: and again\n",
		"DDP-1 none: of another series\n",
	} {
		_, err := parseAll(text)
		require.Error(t, err, text)
	}
}

func TestLoad(t *testing.T) {
	l, err := Load()
	require.NoError(t, err)
	require.NotEmpty(t, l.Mutations)
}

func TestSeriesWithoutRequirements(t *testing.T) {
	require.True(t, Mutation{ID: "MPA2-12a"}.HasRequirement())
	require.True(t, Mutation{ID: "P9R-12a"}.HasRequirement())
	require.False(t, Mutation{ID: "META-1a"}.HasRequirement())
	require.False(t, Mutation{ID: "ARB-1a"}.HasRequirement())
	require.False(t, Mutation{ID: "CONN-1a"}.HasRequirement())
}

func TestApplyWantsOnePlace(t *testing.T) {
	src := "func f() { return 1 }\nfunc g() { return 1 }\n"
	got, err := Mutation{Old: "func f", New: "func h"}.Apply(src)
	require.NoError(t, err)
	require.Equal(t, "func h() { return 1 }\nfunc g() { return 1 }\n", got)

	got, err = Mutation{At: "func g", Old: "return 1", New: "return 2"}.Apply(src)
	require.NoError(t, err)
	require.Equal(t, "func f() { return 1 }\nfunc g() { return 2 }\n", got)

	for _, m := range []Mutation{
		{Old: "return 1"},
		{Old: "return 3"},
		{At: "func", Old: "return 1"},
		{At: "func g", Old: "func f"},
	} {
		_, err := m.Apply(src)
		require.Error(t, err)
	}
}
