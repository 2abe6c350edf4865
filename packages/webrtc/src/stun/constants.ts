/** Protocol numbers of STUN (RFC 8489), ICE (RFC 8445 section 16.1) and TURN (RFC 8656 section 18). */

export const MAGIC_COOKIE = 0x2112a442;
export const STUN_HEADER_LENGTH = 20;
export const FINGERPRINT_XOR = 0x5354554e;

export const Method = {
  binding: 0x001,
  allocate: 0x003,
  refresh: 0x004,
  send: 0x006,
  data: 0x007,
  createPermission: 0x008,
  channelBind: 0x009,
} as const;
export type Method = (typeof Method)[keyof typeof Method];

/** Class bits in their place in the message type field. */
export const MessageClass = { request: 0x000, indication: 0x010, success: 0x100, error: 0x110 } as const;
export type MessageClass = (typeof MessageClass)[keyof typeof MessageClass];

export const Attribute = {
  mappedAddress: 0x0001,
  username: 0x0006,
  messageIntegrity: 0x0008,
  errorCode: 0x0009,
  unknownAttributes: 0x000a,
  channelNumber: 0x000c,
  lifetime: 0x000d,
  xorPeerAddress: 0x0012,
  data: 0x0013,
  realm: 0x0014,
  nonce: 0x0015,
  xorRelayedAddress: 0x0016,
  requestedAddressFamily: 0x0017,
  evenPort: 0x0018,
  requestedTransport: 0x0019,
  dontFragment: 0x001a,
  messageIntegritySha256: 0x001c,
  xorMappedAddress: 0x0020,
  reservationToken: 0x0022,
  priority: 0x0024,
  useCandidate: 0x0025,
  software: 0x8022,
  fingerprint: 0x8028,
  iceControlled: 0x8029,
  iceControlling: 0x802a,
} as const;

/** Error codes with the reason phrases from the IANA registries. */
export const StunError = {
  badRequest: [400, 'Bad Request'],
  unauthorized: [401, 'Unauthorized'],
  forbidden: [403, 'Forbidden'],
  unknownAttribute: [420, 'Unknown Attribute'],
  allocationMismatch: [437, 'Allocation Mismatch'],
  staleNonce: [438, 'Stale Nonce'],
  familyNotSupported: [440, 'Address Family not Supported'],
  wrongCredentials: [441, 'Wrong Credentials'],
  unsupportedTransport: [442, 'Unsupported Transport Protocol'],
  peerFamilyMismatch: [443, 'Peer Address Family Mismatch'],
  roleConflict: [487, 'Role Conflict'],
  insufficientCapacity: [508, 'Insufficient Capacity'],
} as const satisfies Record<string, readonly [number, string]>;
export type StunErrorCode = (typeof StunError)[keyof typeof StunError];
