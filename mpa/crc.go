package mpa

// crcSize is the length of the CRC field, which is present even where CRCs are
// off. It holds the CRC32c of RFC 5044 section 4.4, whose octets go out least
// significant first, unlike those of every other field.
const crcSize = 4
