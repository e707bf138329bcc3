package mpa

// crcSize is the length of the CRC field, which is present even if CRCs are
// off. It holds the CRC32c of RFC 5044 section 4.4, least significant octet first,
// unlike every other field.
const crcSize = 4
