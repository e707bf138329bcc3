package dump

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goiwarp/iwarp/transport"
)

// TestSectionsOfCodes: each code is ascribed to the document that defines it.
func TestSectionsOfCodes(t *testing.T) {
	for code, want := range map[transport.Code]string{
		transport.RDMAPOpUnspecified:   "RFC 5040 section 4.8",
		transport.DDPLocalCatastrophic: "RFC 5041 section 7.2",
		transport.MPAStartup:           "RFC 5044 section 8",
		transport.MPALocalCatastrophic: "RFC 6581 section 8",
		transport.MPANoRTR:             "RFC 6581 section 8",
		0x3000:                         "RFC 6580 section 3",
	} {
		require.Equal(t, want, sectionOf(code), "%v", code)
	}
}
