package commit

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// accept takes the response to r: it must be the one that is due.
func accept(r *rdmap.Request) error {
	h, err := ParseResponse(r.Reply)
	if err != nil {
		return err
	}
	if id := binary.BigEndian.Uint32(r.Inline); h.ID != id {
		return transport.Faultf(transport.RDMAPStreamCatastrophic, "Commit Response to request %d, that to %d is due", h.ID, id)
	}
	return nil
}

// StatusOf returns how the Commit r ended, which has its response.
func StatusOf(r *rdmap.Request) Status { return Status(binary.BigEndian.Uint32(r.Reply[4:])) }
