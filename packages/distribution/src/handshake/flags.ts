/** Distribution flags (Erlang distribution protocol, "Distribution Flags"). 64 bits, so bigints. */
export const FLAG = {
  published: 0x1n,
  extendedReferences: 0x4n,
  distMonitor: 0x8n,
  funTags: 0x10n,
  distMonitorName: 0x20n,
  newFunTags: 0x80n,
  extendedPidsPorts: 0x100n,
  exportPtrTag: 0x200n,
  bitBinaries: 0x400n,
  newFloats: 0x800n,
  unicodeIo: 0x1000n,
  smallAtomTags: 0x4000n,
  utf8Atoms: 0x10000n,
  mapTag: 0x20000n,
  bigCreation: 0x40000n,
  sendSender: 0x80000n,
  bigSeqtraceLabels: 0x100000n,
  exitPayload: 0x400000n,
  handshake23: 0x1000000n,
  unlinkId: 0x2000000n,
  mandatory25: 0x4000000n,
  spawn: 0x100000000n,
  nameMe: 0x200000000n,
  v4Nc: 0x400000000n,
  alias: 0x800000000n,
} as const;

/** Flags implied by mandatory25. The published protocol page gives it another bit; this is the one in use. */
const MANDATORY_25 =
  FLAG.extendedReferences |
  FLAG.funTags |
  FLAG.newFunTags |
  FLAG.extendedPidsPorts |
  FLAG.exportPtrTag |
  FLAG.bitBinaries |
  FLAG.newFloats |
  FLAG.utf8Atoms |
  FLAG.mapTag |
  FLAG.bigCreation |
  FLAG.handshake23;

/** Flags that every other node must have, as OTP 26 and later require. */
export const DEMANDED = MANDATORY_25 | FLAG.unlinkId | FLAG.v4Nc;

/** Our flags. Without the atom cache (0x2000) and fragments (0x800000) OTP sends plain messages in single frames. */
const HIDDEN = 0xd075f5fbcn;

export function ownFlags(visible: boolean): bigint {
  return visible ? HIDDEN | FLAG.published : HIDDEN;
}

/** True for nodes with all our flags and a name: ours and those of Erlang. C nodes lack some. */
export function hasOwnFlags(flags: bigint): boolean {
  return (flags & HIDDEN) === HIDDEN && !hasGivenName(flags);
}

/**
 * True for a node that was given its name, such as `erl -remsh`: no other node can dial it, so it is never a member.
 */
export function hasGivenName(flags: bigint): boolean {
  return (flags & FLAG.nameMe) !== 0n;
}

/** Returns the flags including those that the sent ones imply. */
export function expandFlags(sent: bigint): bigint {
  return (sent & FLAG.mandatory25) === 0n ? sent : sent | MANDATORY_25;
}

/** Returns the names of the missing mandatory flags. */
export function missingFlags(flags: bigint): string[] {
  return Object.entries(FLAG)
    .filter(([, bit]) => (DEMANDED & bit) !== 0n && (flags & bit) === 0n)
    .map(([name]) => name);
}
