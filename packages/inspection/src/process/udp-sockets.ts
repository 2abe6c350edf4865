/** The kernel's figures of UDP sockets, from `/proc/net/udp` and `udp6`: Linux only. */
import { readdir, readFile, readlink } from 'node:fs/promises';

export interface UdpSocket {
  address: string;
  port: number;
  /** Bytes received but not read yet. */
  queuedBytes: number;
  /** Datagrams dropped because the queue was full. */
  drops: number;
}

interface Entry extends UdpSocket {
  inode: string;
}

const MAX_LINES = 10_000;

/** Parses the table; malformed lines are skipped. */
export function parseUdpTable(text: string): Entry[] {
  const entries: Entry[] = [];
  for (const line of text.split('\n', MAX_LINES).slice(1)) {
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode ref pointer drops
    const fields = line.trim().split(/\s+/);
    const [address, port] = (fields[1] ?? '').split(':');
    const queued = Number.parseInt((fields[4] ?? '').split(':')[1] ?? '', 16);
    const drops = Number(fields[12]);
    const inode = fields[9];
    if (fields.length < 13 || !address || !port || !inode || !Number.isSafeInteger(drops) || Number.isNaN(queued)) {
      continue;
    }
    entries.push({ address: addressOf(address), port: Number.parseInt(port, 16), queuedBytes: queued, drops, inode });
  }

  return entries;
}

/** Reads an address whose words are in host byte order: little-endian on every supported platform. */
function addressOf(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) =>
    (word.match(/../g) ?? []).toReversed().map((byte) => Number.parseInt(byte, 16)),
  );
  if (bytes.length === 4) return bytes.join('.');
  const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (isMapped) return bytes.slice(12).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0));

  return groups
    .map((group) => group.toString(16))
    .join(':')
    .replace(/(^|:)0(:0)+(:|$)/, '::');
}

/** Returns the UDP sockets of this process, or null where the system does not report them. */
export async function ownUdpSockets(proc = '/proc'): Promise<UdpSocket[] | null> {
  try {
    const inodes = await ownInodes(proc);
    const tables = await Promise.all(
      ['udp', 'udp6'].map((name) => readFile(`${proc}/self/net/${name}`, 'utf8').catch(() => '')),
    );
    if (tables.every((table) => table === '')) return null;

    return tables
      .flatMap(parseUdpTable)
      .filter(({ inode }) => inodes.has(inode))
      .map(({ address, port, queuedBytes, drops }) => ({ address, port, queuedBytes, drops }));
  } catch {
    return null;
  }
}

/** Returns the number of open files, or null where the system does not report it. */
export async function openFiles(): Promise<number | null> {
  try {
    return (await readdir('/proc/self/fd')).length;
  } catch {
    return null;
  }
}

async function ownInodes(proc: string): Promise<Set<string>> {
  const folder = `${proc}/self/fd`;
  const links = await Promise.all((await readdir(folder)).map((fd) => readlink(`${folder}/${fd}`).catch(() => '')));

  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
}
