import { beforeAll, describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import * as fc from 'fast-check';
import { CipherContext, DtlsClient, HashAlgorithm, SignatureAlgorithm } from 'werift';
import { createCertificate, type DtlsCertificate } from './certificate.js';
import { matchesFingerprint } from './client-proof.js';
import { plainRecord, readRecords } from './records.js';
import { HANDSHAKE_TIMEOUT_MS } from './dtls-association.js';
import { DtlsSession } from './dtls-session.js';
import type { SrtpKeyMaterial } from './key-schedule.js';

const SIGNATURE_HASH = { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 } as const;

let ours: DtlsCertificate;
let theirs: DtlsCertificate;
let stranger: DtlsCertificate;

beforeAll(async () => {
  [ours, theirs, stranger] = await Promise.all([createCertificate(), createCertificate(), createCertificate()]);
});

type Filter = (datagram: Buffer, count: number) => Buffer[];
const pass: Filter = (datagram) => [datagram];

interface PairOptions {
  /** Changes the client's datagrams on the wire: drops, duplicates, splits or delays them. */
  toServer?: Filter;
  toClient?: Filter;
  certificate?: DtlsCertificate;
  srtpProfiles?: number[];
}

/** A session connected to werift's client by an in-memory wire. */
class Pair {
  readonly session: DtlsSession;
  readonly client: DtlsClient;
  readonly sent: Buffer[] = [];
  readonly received: Buffer[] = [];
  keys: SrtpKeyMaterial | undefined;
  failure: string | undefined;
  closedByClient = 0;
  nowMs = 1_000;
  readonly data: Buffer[] = [];
  #stopped = false;
  readonly #ended: Promise<void>;

  constructor(options: PairOptions = {}) {
    const socket = {
      onData: (_data: Buffer): void => undefined,
      send: (datagram: Buffer): Promise<void> => {
        this.received.push(Buffer.from(datagram));
        const through = (options.toServer ?? pass)(Buffer.from(datagram), this.received.length);
        setImmediate(() => through.forEach((one) => this.session.receive(one, this.nowMs)));
        return Promise.resolve();
      },
      close: (): Promise<void> => Promise.resolve(),
    };
    let end: () => void = () => undefined;
    this.#ended = new Promise((resolve) => {
      end = resolve;
    });
    this.session = new DtlsSession(ours, {
      send: (datagram) => {
        this.sent.push(Buffer.from(datagram));
        const through = (options.toClient ?? pass)(Buffer.from(datagram), this.sent.length);
        setImmediate(() => {
          if (!this.#stopped) for (const one of through) socket.onData(one);
        });
      },
      onConnected: (keys) => {
        this.keys = keys;
        end();
      },
      onFailed: (reason) => {
        this.failure = reason;
        end();
      },
      onData: (plain) => this.data.push(plain),
      onClosed: () => {
        this.closedByClient++;
      },
    });
    this.session.expectFingerprint(theirs.fingerprint);
    const certificate = options.certificate ?? theirs;
    this.client = new DtlsClient({
      transport: socket as never,
      cert: certificate.certPem,
      key: certificate.keyPem,
      signatureHash: SIGNATURE_HASH,
      srtpProfiles: (options.srtpProfiles ?? [1]) as never,
      extendedMasterSecret: true,
    });
  }

  /** Runs the handshake until the server has completed it. */
  async run(): Promise<this> {
    this.client.connect().catch(() => undefined);
    await this.#ended;
    this.stopClient();
    return this;
  }

  /** Ends werift's retransmission loop at its next iteration, and prevents a new one. */
  stopClient(): void {
    this.#stopped = true;
    this.client.dtls.flight = 255;
  }

  /** Returns a record encrypted with the client's keys. */
  sealed(type: number, body: Buffer, sequenceNumber = 1_000): Buffer {
    const header = { type, version: 0xfefd, epoch: 1, sequenceNumber };
    const fragment = Buffer.from(this.client.cipher.cipher.encrypt(this.client.sessionType, body, header));
    const out = Buffer.alloc(13);
    out[0] = type;
    out.writeUInt16BE(0xfefd, 1);
    out.writeUInt16BE(1, 3);
    out.writeUIntBE(sequenceNumber, 5, 6);
    out.writeUInt16BE(fragment.length, 11);
    return Buffer.concat([out, fragment]);
  }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe('a handshake', () => {
  test('agrees on the same keys on both sides, with two datagrams of ours', async () => {
    const pair = await new Pair().run();
    await settle();
    const mirrored = pair.client.extractSessionKeys(16, 14);
    expect(pair.keys?.localKey).toEqual(mirrored.remoteKey);
    expect(pair.keys?.remoteKey).toEqual(mirrored.localKey);
    expect(pair.keys?.localSalt).toEqual(mirrored.remoteSalt);
    expect(pair.session.state).toBe('connected');
    expect(pair.sent.length).toBeLessThanOrEqual(2);
    expect(Math.max(...pair.sent.map((datagram) => datagram.length))).toBeLessThanOrEqual(1_200);
  });

  test('survives a client flight that arrives in reverse order, fragmented and twice', async () => {
    const held: Buffer[] = [];
    const pair = new Pair({
      toServer: (datagram) => {
        const cut = cutHandshake(datagram);
        if (cut === undefined || datagram[13] === 1) return [...(cut ?? [datagram]).toReversed(), datagram];
        held.push(...cut.toReversed());
        // Once the third has arrived, pass certificate, key exchange and proof in reverse order.
        return held.length === cut.length * 3 || datagram[13] === 15 ? held.splice(0).toReversed() : [];
      },
    });
    await pair.run();
    expect(pair.failure).toBeUndefined();
    expect(pair.session.state).toBe('connected');
  });

  test('survives the loss of our last flight: a client that repeats its own gets ours in new records', async () => {
    const pair = new Pair({ toClient: (datagram) => (datagram[0] === 20 ? [] : [datagram]) });
    await pair.run();
    const records = (datagrams: readonly Buffer[]) => datagrams.flatMap((datagram) => readRecords(datagram) ?? []);
    const [finished] = pair.received.filter((datagram) => datagram.readUInt16BE(3) === 1);
    const before = records(pair.sent).map(({ epoch, sequence }) => `${epoch}/${sequence}`);
    const sent = pair.sent.length;
    pair.session.receive(Buffer.from(finished as Buffer), pair.nowMs);
    const again = records(pair.sent.slice(sent));
    expect(again.map(({ type }) => type)).toEqual([20, 22]);
    for (const { epoch, sequence } of again) expect(before).not.toContain(`${epoch}/${sequence}`);
  });

  test('survives a client that repeats its whole flight before its Finished has arrived', async () => {
    const flight: Buffer[] = [];
    const pair = new Pair({
      toServer: (datagram) => {
        if (datagram[0] === 22 && datagram[13] === 1) return [datagram];
        flight.push(datagram);
        return datagram.readUInt16BE(3) === 1 ? [...flight.slice(0, 3), ...flight.slice(0, 3), ...flight] : [];
      },
    });
    await pair.run();
    expect(pair.failure).toBeUndefined();
    expect(pair.session.state).toBe('connected');
  });

  test('answers many repeated hellos in one datagram with one flight, and later with one per 100 ms', async () => {
    const pair = new Pair({ toServer: (datagram) => (datagram[13] === 1 ? [datagram] : []) });
    pair.client.connect().catch(() => undefined);
    while (pair.sent.length < 1) await settle();
    pair.stopClient();
    const flight = pair.sent.length;
    // The last fragment of a hello, with no bytes of it, 110 times in one record.
    const fragments = Buffer.concat(Array.from({ length: 110 }, () => Buffer.from('010000010000000001000000', 'hex')));
    const record = plainRecord(22, 9, fragments);
    for (const [afterMs, flights] of [
      [0, 2],
      [0, 2],
      [99, 2],
      [100, 3],
      [150, 3],
      [200, 4],
    ] as const) {
      pair.session.receive(Buffer.from(record), pair.nowMs + afterMs);
      expect([afterMs, pair.sent.length]).toEqual([afterMs, flight * flights]);
    }
  });

  test('answers eight new hellos at once, and then one per second', async () => {
    const pair = new Pair({ toServer: (datagram) => (datagram[13] === 1 ? [datagram] : []) });
    pair.client.connect().catch(() => undefined);
    while (pair.sent.length < 1) await settle();
    pair.stopClient();
    const flight = pair.sent.length;
    const hello = pair.received[0] as Buffer;
    const flights = (count: number, afterMs: number): number => {
      for (let i = 0; i < count; i++) {
        const other = Buffer.from(hello);
        // Changes the client random.
        other.writeUInt32BE(pair.sent.length * 100 + i, 40);
        pair.session.receive(other, pair.nowMs + afterMs);
      }
      return pair.sent.length / flight;
    };
    expect(flights(20, 10)).toBe(8);
    expect(flights(5, 1_009)).toBe(8);
    expect(flights(5, 1_010)).toBe(9);
    expect(flights(5, 2_010)).toBe(10);
  });

  test('continues after a plaintext alert, which anyone can send', async () => {
    const pair = new Pair({ toServer: (datagram) => (datagram[13] === 1 ? [datagram] : []) });
    pair.client.connect().catch(() => undefined);
    while (pair.sent.length < 1) await settle();
    pair.stopClient();
    pair.session.receive(plainRecord(21, 9, Buffer.of(2, 40)), pair.nowMs);
    expect(pair.session.state).toBe('connecting');
    expect(pair.failure).toBeUndefined();
  });

  test('answers a Finished replayed many times in one datagram with one flight', async () => {
    const pair = await new Pair().run();
    const finished = pair.received.find((datagram) => datagram.readUInt16BE(3) === 1);
    const before = pair.sent.length;
    pair.session.receive(Buffer.concat(Array.from({ length: 20 }, () => finished as Buffer)), pair.nowMs);
    expect(pair.sent.length).toBe(before + 1);
  });

  test('retransmits its flight at growing intervals and gives up after 30 s', async () => {
    const pair = new Pair({ toServer: (datagram) => (datagram[13] === 1 ? [datagram] : []) });
    pair.client.connect().catch(() => undefined);
    while (pair.sent.length < 1) await settle();
    pair.stopClient();
    const repeatedAt: number[] = [];
    for (let ms = 0; ms < HANDSHAKE_TIMEOUT_MS; ms += 250) {
      const before = pair.sent.length;
      pair.session.sweep(pair.nowMs + ms);
      if (pair.sent.length > before) repeatedAt.push(ms);
    }
    expect(repeatedAt).toEqual([1_000, 3_000, 7_000, 15_000]);
    expect(pair.failure).toBeUndefined();
    pair.session.sweep(pair.nowMs + HANDSHAKE_TIMEOUT_MS);
    expect(pair.failure).toBe('the DTLS handshake did not finish within 30 s');
  });

  test('does not count a pause of the process as part of a handshake', async () => {
    const pair = new Pair({ toServer: (datagram) => (datagram[13] === 1 ? [datagram] : []) });
    pair.client.connect().catch(() => undefined);
    while (pair.sent.length < 1) await settle();
    pair.stopClient();
    const pausedMs = 40_000;
    pair.session.paused(pausedMs, pair.nowMs + pausedMs);
    pair.session.sweep(pair.nowMs + pausedMs);
    expect(pair.failure).toBeUndefined();
    pair.session.sweep(pair.nowMs + pausedMs + HANDSHAKE_TIMEOUT_MS);
    expect(pair.failure).toBe('the DTLS handshake did not finish within 30 s');
  });
});

describe('refusing a client', () => {
  test('refuses a client whose certificate is not the announced one', async () => {
    const pair = await new Pair({ certificate: stranger }).run();
    expect(pair.failure).toBe('the DTLS certificate does not match the announced fingerprint');
    expect(pair.keys).toBeUndefined();
    expect(pair.session.state).toBe('failed');
    expect(pair.sent.some((datagram) => datagram.readUInt16BE(3) === 1)).toBe(false);
  });

  test('refuses a client that shows the announced certificate without holding its key', async () => {
    const pair = new Pair({ certificate: stranger });
    const shown = new CipherContext(1, theirs.certPem, theirs.keyPem, SIGNATURE_HASH);
    pair.client.cipher.localCert = shown.localCert;
    await pair.run();
    expect(pair.failure).toBe('the client does not hold the key of its DTLS certificate');
  });

  test('refuses a client that shares no SRTP profile with us, and finally gives the reason', async () => {
    const pair = new Pair({ srtpProfiles: [7] });
    pair.client.connect().catch(() => undefined);
    while (pair.received.length === 0) await settle();
    await settle();
    pair.stopClient();
    pair.session.sweep(pair.nowMs + HANDSHAKE_TIMEOUT_MS);
    expect(pair.failure).toBe(
      'the DTLS handshake did not finish within 30 s: the client does not support SRTP_AES128_CM_HMAC_SHA1_80',
    );
  });

  test('fails a session whose announced fingerprint changes while it runs', async () => {
    const pair = await new Pair().run();
    pair.session.expectFingerprint(theirs.fingerprint);
    expect(pair.failure).toBeUndefined();
    pair.session.expectFingerprint(stranger.fingerprint);
    expect(pair.failure).toBe('the DTLS fingerprint changed during the session');
  });

  test.each(['sha-1', 'md5', 'sha-256'])('refuses a %s fingerprint that proves nothing', (algorithm) => {
    const certificate = Buffer.from('certificate');
    expect(matchesFingerprint(certificate, { algorithm, value: 'AA:BB' })).toBe(false);
    expect(matchesFingerprint(certificate, { algorithm, value: '' })).toBe(false);
  });
});

describe('a connected session', () => {
  test('ignores plaintext records once connected', async () => {
    const pair = await new Pair().run();
    const hello = pair.received[0] as Buffer;
    const alert = Buffer.from('15fefd000000000000000900020228', 'hex');
    expect(pair.session.receive(Buffer.from(hello), pair.nowMs)).toBe('dtls_unexpected');
    expect(pair.session.receive(alert, pair.nowMs)).toBe('dtls_unexpected');
    await settle();
    expect(pair.session.state).toBe('connected');
    expect(pair.failure).toBeUndefined();
    expect(pair.closedByClient).toBe(0);
  });

  test("closes on the client's close_notify, but not on an unencrypted alert", async () => {
    const pair = await new Pair().run();
    const closing = pair.sealed(21, Buffer.of(1, 0));
    const forged = Buffer.from(closing);
    forged[forged.length - 1] = (forged[forged.length - 1] ?? 0) ^ 1;
    expect(pair.session.receive(forged, pair.nowMs)).toBe('unauthenticated');
    expect(pair.session.state).toBe('connected');
    expect(pair.session.receive(closing, pair.nowMs)).toBeUndefined();
    expect(pair.session.state).toBe('closed');
    expect(pair.closedByClient).toBe(1);
    expect(pair.failure).toBeUndefined();
  });

  test('does not answer what follows close_notify in the same datagram', async () => {
    const pair = await new Pair().run();
    await settle();
    const before = pair.sent.length;
    pair.session.receive(Buffer.concat([pair.sealed(21, Buffer.of(1, 0)), pair.received[0] as Buffer]), pair.nowMs);
    expect(pair.session.state).toBe('closed');
    expect(pair.sent).toHaveLength(before);
  });

  test('fails on a fatal alert from the client', async () => {
    const pair = await new Pair().run();
    pair.session.receive(pair.sealed(21, Buffer.of(2, 80)), pair.nowMs);
    expect(pair.failure).toBe('the client ended DTLS with alert 80');
  });

  test('does not start over on an encrypted hello', async () => {
    const pair = await new Pair().run();
    const hello = (pair.received[0] as Buffer).subarray(13);
    expect(pair.session.receive(pair.sealed(22, Buffer.from(hello)), pair.nowMs)).toBe('dtls_unexpected');
    expect(pair.session.state).toBe('connected');
  });

  test('sends close_notify in a record that the client can read', async () => {
    const pair = await new Pair().run();
    await settle();
    pair.session.close();
    pair.session.close();
    const goodbye = pair.sent.at(-1) as Buffer;
    const plain = pair.client.cipher.cipher.decrypt(pair.client.sessionType, goodbye.subarray(13), {
      type: 21,
      version: 0xfefd,
      epoch: 1,
      sequenceNumber: goodbye.readUIntBE(5, 6),
    });
    expect([...plain]).toEqual([1, 0]);
    expect(pair.sent.filter((datagram) => datagram[0] === 21)).toHaveLength(1);
  });
});

describe('garbage', () => {
  test('garbage before, between and after real datagrams neither throws nor disturbs the handshake', async () => {
    const junk = fc.sample(
      fc.oneof(
        fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
        fc
          .tuple(fc.nat(30), fc.nat(6), fc.uint8Array({ maxLength: 60 }))
          // DTLS cannot distinguish a complete message of the right type in the right place from the client's own.
          .filter(([type, seq]) => [1, 11, 16, 15][seq] !== type)
          .map(([type, seq, body]) => helloLike(type, seq, body)),
      ),
      300,
    );
    const pair = new Pair({ toServer: (datagram) => [...junk, datagram, ...junk] });
    await pair.run();
    expect(pair.failure).toBeUndefined();
    expect(pair.session.state).toBe('connected');
    for (const datagram of junk) pair.session.receive(Buffer.from(datagram), pair.nowMs);
    await settle();
    expect(pair.session.state).toBe('connected');
  });

  test('modified datagrams of a real client, in any order, never throw or connect', async () => {
    const pair = await new Pair().run();
    const real = pair.received;
    let connected = 0;
    let sent = 0;
    const fresh = (): DtlsSession =>
      new DtlsSession(ours, {
        send: () => sent++,
        onConnected: () => connected++,
        onFailed: () => undefined,
        onClosed: () => undefined,
        onData: () => undefined,
      });
    let session = fresh();
    let runs = 0;
    let nowMs = 0;
    fc.assert(
      fc.property(
        fc.nat(real.length - 1),
        fc.array(fc.tuple(fc.nat(400), fc.integer({ min: 1, max: 255 })), { maxLength: 3 }),
        (index, changes) => {
          // Start a new session now and then: most datagrams are only accepted early in a handshake.
          if (runs++ % 100 === 0) session = fresh();
          const datagram = Buffer.from(real[index] as Buffer);
          for (const [at, mask] of changes) {
            const where = at % datagram.length;
            datagram[where] = (datagram[where] ?? 0) ^ mask;
          }
          session.receive(datagram, (nowMs += 50));
          session.sweep(nowMs);
        },
      ),
      { numRuns: fuzzRuns(10_000) },
    );
    // A replayed client cannot finish, because the server random is new.
    expect(connected).toBe(0);
    expect(sent).toBeGreaterThan(runs / 100);
  });
});

/** Splits a datagram with one plaintext handshake message into two records with one fragment each. */
function cutHandshake(datagram: Buffer): Buffer[] | undefined {
  if (datagram[0] !== 22 || datagram.readUInt16BE(3) !== 0) return undefined;
  const head = datagram.subarray(13, 25);
  const body = datagram.subarray(25);
  const at = body.length >> 1;
  return [
    [0, at],
    [at, body.length],
  ].map(([from = 0, to = 0]) => {
    const fragment = Buffer.from(head);
    fragment.writeUIntBE(from, 6, 3);
    fragment.writeUIntBE(to - from, 9, 3);
    const record = Buffer.from(datagram.subarray(0, 13));
    record.writeUInt16BE(12 + to - from, 11);
    return Buffer.concat([record, fragment, body.subarray(from, to)]);
  });
}

/** A well-formed record with a complete handshake message of garbage. */
function helloLike(type: number, messageSeq: number, body: Uint8Array): Buffer {
  const out = Buffer.alloc(25);
  out[0] = 22;
  out.writeUInt16BE(0xfefd, 1);
  out.writeUInt16BE(12 + body.length, 11);
  out[13] = type;
  out.writeUIntBE(body.length, 14, 3);
  out.writeUInt16BE(messageSeq, 17);
  out.writeUIntBE(body.length, 22, 3);
  return Buffer.concat([out, body]);
}
