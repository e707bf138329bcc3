package main

import "path/filepath"

// The two builds of siw. The stock build is Debian's unchanged source. The other build is
// modified, and does not show what a real Linux machine does: its compile-time constants
// are module parameters, so that the lab reaches code of siw that otherwise never
// runs. Except for the changes described below, the protocol code is the same.
const (
	stock     = "stock"
	withKnobs = "knobs"
)

// knobs holds the edits of siw, by file. The parameters replace these constants:
//
//	mpa_crc_required  ask for CRC in the Request, as a CRC-less siw never does
//	mpa_crc_strict    refuse a peer that differs about CRC
//	mpa_version       revision of the Request, 1 or 2
//	peer_to_peer      ask for a ready-to-receive message (RFC 6581)
//	rtr_type          which: 64 Read, 128 Write, 192 either; also what a responder chooses from
//	try_gso           send FPDUs larger than the segment size, also to a peer that did not ask
//	                  for them by siw's private flag in the startup frames
var knobs = map[string]edits{
	"siw_main.c": {
		constant("try_gso"), constant("mpa_crc_required"), constant("mpa_crc_strict"), constant("peer_to_peer"),
		{"u_char mpa_version = MPA_REVISION_2;", "u_char mpa_version = MPA_REVISION_2;\nmodule_param(mpa_version, byte, 0644);"},
	},
	"siw.h": {
		declaration("try_gso"), declaration("mpa_crc_required"), declaration("mpa_crc_strict"), declaration("peer_to_peer"),
	},
	"siw_cm.c": {
		{
			"static __be16 rtr_type = MPA_V2_RDMA_READ_RTR | MPA_V2_RDMA_WRITE_RTR;",
			"static __be16 rtr_type = MPA_V2_RDMA_READ_RTR | MPA_V2_RDMA_WRITE_RTR;\nmodule_param(rtr_type, ushort, 0644);",
		},
		{"if (try_gso && rep->params.bits & MPA_RR_FLAG_GSO_EXP) {", "if (try_gso) {"},
		{"if (try_gso && cep->mpa.hdr.params.bits & MPA_RR_FLAG_GSO_EXP) {", "if (try_gso) {"},
		{"if (v2->ord & MPA_V2_RDMA_WRITE_RTR)\n", "if (v2->ord & rtr_type & MPA_V2_RDMA_WRITE_RTR)\n"},
	},
}

func constant(name string) [2]string {
	return [2]string{
		"const bool " + name + ";",
		"bool " + name + ";\nmodule_param(" + name + ", bool, 0644);",
	}
}

func declaration(name string) [2]string {
	return [2]string{"extern const bool " + name + ";", "extern bool " + name + ";"}
}

func addKnobs(dir string) error {
	for file, changes := range knobs {
		if err := edit(filepath.Join(dir, file), changes); err != nil {
			return err
		}
	}
	return nil
}
