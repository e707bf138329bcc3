package capsule

import "encoding/binary"

// IdentifyNVM is the data of Identify, CNS 6 and CSI 0 (NVM command set 1.0, 4.1.5.4): limits of commands, 0 for
// no limit.
//
//	0 VSL | 1 WZSL | 2 WUSL | 3 DMRL | 4 DMRSL, 32 bits | 8 DMSL, 64 bits
type IdentifyNVM struct {
	VSL   uint8 // Verify, like MDTS
	WZSL  uint8 // Write Zeroes, like MDTS
	WUSL  uint8 // Write Uncorrectable, like MDTS
	DMRL  uint8 // ranges of Dataset Management
	DMRSL uint32
	DMSL  uint64 // LBAs of a whole command; DMRSL: of one range
}

// Put writes the data to a page of 4096 octets, with zeros elsewhere.
func (n IdentifyNVM) Put(page []byte) {
	page = page[:PageSize]
	clear(page)
	page[0], page[1], page[2], page[3] = n.VSL, n.WZSL, n.WUSL, n.DMRL
	binary.LittleEndian.PutUint32(page[4:], n.DMRSL)
	binary.LittleEndian.PutUint64(page[8:], n.DMSL)
}

// ParseIdentifyNVM reads the data, of at least 4096 octets.
func ParseIdentifyNVM(b []byte) (IdentifyNVM, error) {
	if len(b) < PageSize {
		return IdentifyNVM{}, malformed("an Identify of the command set of %d octets", len(b))
	}
	return IdentifyNVM{
		VSL: b[0], WZSL: b[1], WUSL: b[2], DMRL: b[3],
		DMRSL: binary.LittleEndian.Uint32(b[4:]),
		DMSL:  binary.LittleEndian.Uint64(b[8:]),
	}, nil
}
