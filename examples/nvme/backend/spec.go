package backend

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goiwarp/iwarp/internal/units"
)

// Kind is the kind of medium of a Spec.
type Kind string

// The kinds.
const (
	KindMemory Kind = "mem"
	KindFile   Kind = "file"
	KindDevice Kind = "block"
)

// A Spec describes a Backend on a command line: a kind, a colon, a size (of memory) or a path, and
// options, each preceded by a comma. A comma in a path is written twice. Sizes are in octets, or in
// KiB, MiB, GiB or TiB.
//
//	size=SIZE  file: make the file, or grow it, to SIZE
//	bs=OCTETS  size of a logical block: 512, 1024, 2048 or 4096 (default 4096; of a device: its own)
//	cap=SIZE   mem: allocate no more than SIZE
//	volatile   mem: report a volatile cache to the host
//	ro         read-only
//	dsync      file, block: every write is durable (O_DSYNC)
//	direct     file, block: bypass the page cache (O_DIRECT; Linux)
//	discard    block: trim by BLKDISCARD, which need not leave zeros
type Spec struct {
	Kind Kind
	FileConfig
	Cap      int64 // see MemoryConfig
	Volatile bool  // see MemoryConfig
}

// Open opens the Backend that spec describes. See [Spec].
func Open(spec string) (Backend, error) {
	s, err := ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	return s.Open()
}

// Open opens the Backend.
func (s Spec) Open() (Backend, error) {
	switch s.Kind {
	case KindMemory:
		return s.openMemory()
	case KindFile:
		return OpenFile(s.FileConfig)
	case KindDevice:
		return OpenDevice(s.FileConfig)
	}
	return nil, fmt.Errorf("backend: %q is no kind of back end", s.Kind)
}

func (s Spec) openMemory() (Backend, error) {
	m, err := NewMemory(MemoryConfig{s.Size, s.BlockSize, s.Cap, s.ReadOnly, s.Volatile})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// ParseSpec parses a Spec. It opens nothing.
func ParseSpec(spec string) (Spec, error) {
	s, err := parseSpec(spec)
	if err != nil {
		return Spec{}, fmt.Errorf("backend: %q: %w", spec, err)
	}
	return s, nil
}

func parseSpec(spec string) (s Spec, err error) {
	kind, rest, found := strings.Cut(spec, ":")
	s.Kind = Kind(kind)
	if !found || s.Kind != KindMemory && s.Kind != KindFile && s.Kind != KindDevice {
		return s, errors.New("want mem:SIZE, file:PATH or block:PATH, and options with commas in front")
	}
	fields := splitCommas(rest)
	switch {
	case fields[0] == "" && s.Kind == KindMemory:
		return s, errors.New("the size is missing, as in mem:1GiB")
	case fields[0] == "":
		return s, errors.New("the path is missing")
	case strings.ContainsRune(fields[0], 0):
		return s, errors.New("a path has no NUL")
	case s.Kind == KindMemory:
		if s.Size, err = parseSize(fields[0]); err != nil {
			return s, err
		}
	default:
		s.Path = fields[0]
	}
	seen := make(map[string]bool)
	for _, field := range fields[1:] {
		name, value, valued := strings.Cut(field, "=")
		if seen[name] {
			return s, fmt.Errorf("the option %q is there twice", name)
		}
		seen[name] = true
		if err := s.set(name, value, valued); err != nil {
			return s, err
		}
	}
	return s, nil
}

// splitCommas splits s at single commas. Two commas in a row are one comma of a field.
func splitCommas(s string) (fields []string) {
	var field strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != ',':
			field.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == ',':
			field.WriteByte(',')
			i++
		default:
			fields = append(fields, field.String())
			field.Reset()
		}
	}
	return append(fields, field.String())
}

// An option describes an option of a Spec.
type option struct {
	kinds string // those that take it, each between spaces
	flag  func(*Spec) *bool
	size  func(*Spec) *int64 // nil for a flag
}

var options = map[string]option{
	"size":     {kinds: " file ", size: func(s *Spec) *int64 { return &s.Size }},
	"cap":      {kinds: " mem ", size: func(s *Spec) *int64 { return &s.Cap }},
	"bs":       {kinds: " mem file block "},
	"volatile": {kinds: " mem ", flag: func(s *Spec) *bool { return &s.Volatile }},
	"ro":       {kinds: " mem file block ", flag: func(s *Spec) *bool { return &s.ReadOnly }},
	"dsync":    {kinds: " file block ", flag: func(s *Spec) *bool { return &s.Sync }},
	"direct":   {kinds: " file block ", flag: func(s *Spec) *bool { return &s.Direct }},
	"discard":  {kinds: " block ", flag: func(s *Spec) *bool { return &s.Discard }},
}

// optionNames lists the options in the order in which String writes them.
var optionNames = []string{"size", "cap", "bs", "volatile", "ro", "dsync", "direct", "discard"}

// set sets one option.
func (s *Spec) set(name, value string, valued bool) error {
	o, known := options[name]
	switch {
	case !known:
		return fmt.Errorf("the option %q is not known; there are %s", name, strings.Join(optionNames, ", "))
	case !strings.Contains(o.kinds, " "+string(s.Kind)+" "):
		return fmt.Errorf("the option %s is not one of %s", name, s.Kind)
	case o.flag != nil && valued:
		return fmt.Errorf("the option %s takes no value", name)
	case o.flag != nil:
		*o.flag(s) = true
		return nil
	}
	n, err := parseSize(value)
	if err != nil {
		return fmt.Errorf("the option %s: %w", name, err)
	}
	if o.size != nil {
		*o.size(s) = n
		return nil
	}
	if n != 512 && n != 1024 && n != 2048 && n != 4096 {
		return fmt.Errorf("the option %s is 512, 1024, 2048 or 4096, not %s", name, value)
	}
	s.BlockSize = int(n)
	return nil
}

// parseSize parses a number of octets, which must not be 0.
func parseSize(text string) (int64, error) {
	var n units.Size
	if n.Set(text) != nil || n == 0 {
		return 0, fmt.Errorf("%q is no size: want octets, as 4096, or 512MiB (KiB, MiB, GiB, TiB)", text)
	}
	return int64(n), nil
}

// String returns a text that ParseSpec parses to s.
func (s Spec) String() string {
	text := string(s.Kind) + ":" + strings.ReplaceAll(s.Path, ",", ",,")
	if s.Kind == KindMemory {
		text = string(s.Kind) + ":" + (*units.Size)(&s.Size).String()
	}
	for _, name := range optionNames {
		o := options[name]
		switch {
		case !strings.Contains(o.kinds, " "+string(s.Kind)+" "):
		case o.flag != nil:
			if *o.flag(&s) {
				text += "," + name
			}
		case o.size != nil:
			if n := *o.size(&s); n > 0 {
				text += "," + name + "=" + (*units.Size)(&n).String()
			}
		case s.BlockSize > 0:
			text += "," + name + "=" + strconv.Itoa(s.BlockSize)
		}
	}
	return text
}
