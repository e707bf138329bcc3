package main

import (
	"encoding/json"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func infoOfTests() *debug.BuildInfo {
	return &debug.BuildInfo{
		GoVersion: "go1.26.8 X:none", Path: "github.com/goiwarp/iwarp/cmd/iwarp", Main: debug.Module{Path: "github.com/goiwarp/iwarp", Version: "(devel)"},
		Deps: []*debug.Module{{Path: "golang.org/x/sys", Version: "v0.49.0", Sum: "h1:abc="}, {Path: "example.com/Upper", Version: "v1.0.0+incompatible", Sum: "h1:def="}},
	}
}

func TestBillOfMaterials(t *testing.T) {
	r := release{version: "v0.1.0", commit: "1234abcd", time: at}
	text, err := r.bill(target{"linux", "arm64"}, infoOfTests(), []byte("program"))
	require.NoError(t, err)
	var b bill
	require.NoError(t, json.Unmarshal(text, &b))
	require.Equal(t, "CycloneDX", b.Format)
	require.Equal(t, "2026-01-02T03:04:06Z", b.Metadata.Timestamp)
	require.Regexp(t, "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", b.Serial)
	main := b.Metadata.Component
	require.Equal(t, "pkg:golang/github.com/goiwarp/iwarp@v0.1.0", main.PURL)
	require.Contains(t, main.Properties, property{"iwarp:platform", "linux/arm64"})
	require.Equal(t, []hash{{"SHA-256", "1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8"}}, main.Hashes)
	var urls []string
	for _, c := range b.Components {
		urls = append(urls, c.PURL)
	}
	require.Equal(t, []string{"pkg:golang/std@1.26.8", "pkg:golang/golang.org/x/sys@v0.49.0", "pkg:golang/example.com/upper@v1.0.0%2Bincompatible"}, urls)
	require.Equal(t, []dependency{{main.Ref, urls}}, b.Dependencies)
	require.Contains(t, string(text), `"go:sum"`)
}

func TestBillRefusesModulesThatAreNotPublished(t *testing.T) {
	r := release{version: "v0.1.0", time: at}
	info := infoOfTests()
	info.Deps[0].Sum = ""
	_, err := r.bill(target{"linux", "arm64"}, info, nil)
	require.ErrorContains(t, err, "golang.org/x/sys has no sum")
	info.Deps[0].Replace = &debug.Module{Path: "../sys"}
	_, err = r.bill(target{"linux", "arm64"}, info, nil)
	require.ErrorContains(t, err, "replaces golang.org/x/sys")
}

func TestLicencesOfDependencies(t *testing.T) {
	r := release{root: filepath.Join("..", "..")}
	info := infoOfTests()
	info.Deps = info.Deps[:1]
	text, err := r.licences(t.Context(), info)
	require.NoError(t, err)
	for _, want := range []string{"  golang.org/x/sys v0.49.0\n", "\nGo, go1.26.8", "golang.org/x/sys v0.49.0: LICENSE\n", "golang.org/x/sys v0.49.0: PATENTS\n", "Redistribution and use"} {
		require.Contains(t, string(text), want)
	}
	info.Deps[0].Path = "example.com/not/required"
	_, err = r.licences(t.Context(), info)
	require.ErrorContains(t, err, "example.com/not/required")
}
