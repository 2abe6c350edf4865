// Measures sealing per packet and receiver, and opening per packet, in microseconds. Sends nothing. Build first:
// npx tsc -b packages/webrtc && node packages/webrtc/bench/seal.mjs
import { randomBytes } from 'node:crypto';
import { OutboundHeader } from '@bloom/rtp';
import { createPacketSealer, SrtpReceiveSession, SrtpSendSession } from '../dist/srtp/index.js';

const RECEIVERS = [1, 2, 4, 50];
const SECONDS = 0.7;
const rows = [];

function median(values) {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}

/** Warms up, then runs `body` three times. `body` returns the number of packets it handled. */
function measure(body) {
  const runs = [];
  for (let run = 0; run < 4; run += 1) {
    const end = performance.now() + SECONDS * 1000 * (run === 0 ? 0.5 : 1);
    const before = process.cpuUsage();
    let packets = 0;
    while (performance.now() < end) packets += body();
    const used = process.cpuUsage(before);
    if (run > 0) runs.push((used.user + used.system) / packets);
  }
  return median(runs).toFixed(2);
}

for (const bytes of [1200, 100]) {
  for (const kind of ['wasm', 'javascript']) {
    const row = { what: `seal, ${kind}`, bytes };
    for (const count of RECEIVERS) {
      const sealer = createPacketSealer({ kind });
      const sink = { headroom: 4, send: () => true };
      const receivers = Array.from({ length: count }, (_, i) => {
        const session = new SrtpSendSession({ masterKey: randomBytes(16), masterSalt: randomBytes(14) });
        const header = new OutboundHeader({
          ssrc: i + 1,
          payloadType: 96,
          mid: '1',
          extensionIds: { mid: 4, transportCc: 3 },
        });
        return { header, stream: sealer.openStream(session, i + 1, sink) };
      });
      const payload = randomBytes(bytes);
      let index = 100;
      row[`to ${count}`] = measure(() => {
        for (let i = 0; i < 100; i += 1) {
          index += 1;
          sealer.begin(payload, 0, bytes);
          for (const receiver of receivers) {
            const at = sealer.reserve();
            const header = receiver.header.write(sealer.arena, at, false, index, index, index & 0xffff);
            sealer.commit(receiver.stream, header, 0, 0, index);
          }
          sealer.end();
        }
        return 100 * count;
      });
    }
    rows.push(row);
  }

  const keys = { masterKey: randomBytes(16), masterSalt: randomBytes(14) };
  const sender = new SrtpSendSession(keys);
  const receiver = new SrtpReceiveSession(keys);
  const batch = Array.from({ length: 20_000 }, () => Buffer.alloc(bytes + 22));
  let sequence = 0;
  let sealing = 0;
  const opening = [];
  for (let run = 0; run < 4; run += 1) {
    const start = process.cpuUsage();
    for (const packet of batch) {
      packet.fill(0, 0, 12);
      packet[0] = 0x80;
      packet.writeUInt16BE(sequence & 0xffff, 2);
      sequence += 1;
      sender.sealRtp(packet, 0, bytes + 12);
    }
    const middle = process.cpuUsage();
    for (const packet of batch) if (receiver.open(packet) < 0) throw new Error('a packet of ours was refused');
    const end = process.cpuUsage();
    sealing = (middle.user + middle.system - start.user - start.system) / batch.length;
    opening.push((end.user + end.system - middle.user - middle.system) / batch.length);
  }
  rows.push({ what: 'seal in place', bytes, 'to 1': sealing.toFixed(2) });
  rows.push({ what: 'open', bytes, 'to 1': median(opening.slice(1)).toFixed(2) });
}
for (const { what, bytes, ...columns } of rows) {
  const cells = Object.entries(columns).map(([name, value]) => `${name}: ${value}`);
  process.stdout.write(`${what.padEnd(18)} ${String(bytes).padStart(5)} B   ${cells.join('   ')}\n`);
}
