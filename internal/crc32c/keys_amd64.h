// The keys of keys_amd64.go, named for the distance in octets.
#define KEY512 ·keys+0(SB)
#define KEY256 ·keys+16(SB)
#define KEY128 ·keys+32(SB)
#define KEY64 ·keys+48(SB)
#define KEY48 ·keys+64(SB)
#define KEY32 ·keys+80(SB)
#define KEY16 ·keys+96(SB)

// Four lanes, and two, to be moved to the last of them: {48, 32, 16, 0} and {16, 0}.
#define LANES512 ·keys+64(SB)
#define LANES256 ·keys+96(SB)
