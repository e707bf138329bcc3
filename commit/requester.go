package commit

import (
	"encoding/binary"

	"github.com/goiwarp/iwarp/rdmap"
	"github.com/goiwarp/iwarp/transport"
)

// accept checks that the response that has arrived is the response to r.
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

// StatusOf returns the status of the Commit r, whose response has arrived.
func StatusOf(r *rdmap.Request) Status { return Status(binary.BigEndian.Uint32(r.Reply[4:])) }
