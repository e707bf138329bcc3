package backend

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseSpec(t *testing.T) {
	for _, c := range []struct {
		text string
		want Spec
		form string // of String; "": text
	}{
		{"mem:1GiB", Spec{Kind: KindMemory, FileConfig: FileConfig{Size: 1 << 30}}, ""},
		{"mem:1TiB,cap=4096KiB,bs=512,volatile,ro", Spec{
			Kind: KindMemory, FileConfig: FileConfig{Size: 1 << 40, BlockSize: 512, ReadOnly: true}, Cap: 4 << 20, Volatile: true,
		}, "mem:1TiB,cap=4MiB,bs=512,volatile,ro"},
		{"mem:4097", Spec{Kind: KindMemory, FileConfig: FileConfig{Size: 4097}}, ""},
		{"file:/a/b", Spec{Kind: KindFile, FileConfig: FileConfig{Path: "/a/b"}}, ""},
		{"file:a:b=c,,d,,,ro", Spec{Kind: KindFile, FileConfig: FileConfig{Path: "a:b=c,d,", ReadOnly: true}}, ""},
		{"file:x,direct,dsync,bs=1KiB,size=10MiB", Spec{
			Kind: KindFile, FileConfig: FileConfig{Path: "x", Size: 10 << 20, BlockSize: 1024, Sync: true, Direct: true},
		}, "file:x,size=10MiB,bs=1024,dsync,direct"},
		{"block:/dev/sdb,discard,direct", Spec{
			Kind: KindDevice, FileConfig: FileConfig{Path: "/dev/sdb", Direct: true, Discard: true},
		}, "block:/dev/sdb,direct,discard"},
	} {
		got, err := ParseSpec(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
		form := c.form
		if form == "" {
			form = c.text
		}
		require.Equal(t, form, got.String())
	}
}

func TestParseSpecErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "want mem:SIZE, file:PATH or block:PATH",
		"disk":                        "want mem:SIZE",
		"tape:1GiB":                   "want mem:SIZE",
		"mem:":                        "the size is missing, as in mem:1GiB",
		"mem:0":                       `"0" is no size`,
		"mem:-1":                      "is no size",
		"mem:1GB":                     `"1GB" is no size: want octets`,
		"mem:8388608TiB":              "is no size",
		"mem:9223372036854775808":     "is no size",
		"mem:1GiB,size=1GiB":          "the option size is not one of mem",
		"mem:1GiB,direct":             "the option direct is not one of mem",
		"file:":                       "the path is missing",
		"file:a\x00b":                 "no NUL",
		"file:a,rw":                   `the option "rw" is not known; there are size, cap, bs, volatile, ro, dsync, direct, discard`,
		"file:a,":                     `the option "" is not known`,
		"file:a,ro,ro":                `the option "ro" is there twice`,
		"file:a,ro=yes":               "the option ro takes no value",
		"file:a,size":                 `the option size: "" is no size`,
		"file:a,bs=8192":              "the option bs is 512, 1024, 2048 or 4096, not 8192",
		"file:a,bs=1000":              "the option bs is 512",
		"file:a,discard":              "the option discard is not one of file",
		"block:/dev/sdb,size=1GiB":    "the option size is not one of block",
		"block:/dev/sdb,cap=16777216": "the option cap is not one of block",
	} {
		_, err := ParseSpec(text)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "backend: ")
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a,b")
	text := Spec{Kind: KindFile, FileConfig: FileConfig{Path: path, Size: 1 << 20, BlockSize: 512}}.String()
	b, err := Open(text)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, b.Size())
	require.Equal(t, 512, b.BlockSize())
	require.True(t, b.Volatile())
	require.NoError(t, b.Close())

	b, err = Open("mem:10MiB,bs=512,volatile,cap=1MiB")
	require.NoError(t, err)
	require.True(t, b.Volatile())
	require.NoError(t, b.WriteAt(ctx, make([]byte, 512), 0, true))
	require.ErrorIs(t, b.WriteAt(ctx, make([]byte, 512), 1<<20, true), ErrNoSpace)
	require.NoError(t, b.Close())

	for text, want := range map[string]string{
		"mem:100":             "100 octets are less than one block of 4096",
		"mem:17TiB":           "more than 16 TiB",
		"mem:1GiB,cap=4096":   "less than the 1 MiB",
		"memory:1GiB":         "want mem:SIZE",
		"file:" + t.TempDir(): "is no regular file",
		"block:/no/such/disk": "backend: ",
	} {
		_, err := Open(text)
		require.ErrorContains(t, err, want, text)
	}
	_, err = Spec{}.Open()
	require.ErrorContains(t, err, "is no kind")
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{
		"mem:1GiB,cap=1MiB,bs=512,volatile", "file:/a,,b,size=1TiB,ro", "block:/dev/sdb,direct,discard,dsync", "file:,", "mem:1,bs=", "a:b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec(text)
		if err != nil {
			require.Equal(t, Spec{}, s)
			return
		}
		again, err := ParseSpec(s.String())
		require.NoError(t, err, "%q of %q", s.String(), text)
		require.Equal(t, s, again)
		require.Equal(t, s.String(), again.String())
	})
}
