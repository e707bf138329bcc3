package mpa

import "hash/crc32"

// castagnoli is the table of CRC32c (RFC 5044 section 4.4, RFC 3720 section
// 12.1). The register's octets go out least significant first, unlike every
// other field.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crcSize is the length of the CRC field, which is present even where CRCs are
// off.
const crcSize = 4
