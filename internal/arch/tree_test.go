package arch

import (
	"go/token"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/internal/arch/measure"
)

const (
	module = "github.com/goiwarp/iwarp"
	root   = "../.."
)

func parse(t *testing.T, name, src string) *measure.File {
	t.Helper()
	f, err := measure.Parse(token.NewFileSet(), name, []byte(src))
	require.NoError(t, err)
	return f
}

// goFiles reads all Go files of the module, once for all tests.
var goFiles = sync.OnceValues(func() ([]*measure.File, error) { return measure.GoFiles(root) })

// tree lists all Go files of the module.
func tree(t *testing.T) []*measure.File {
	t.Helper()
	files, err := goFiles()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// under tells whether a package path is one of dirs or below one.
func under(p string, dirs []string) bool {
	for _, d := range dirs {
		if p == d || strings.HasPrefix(p, d+"/") {
			return true
		}
	}
	return false
}
