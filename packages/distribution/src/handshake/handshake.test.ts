import { describe, expect, test } from '@jest/globals';
import { fuzzRuns } from '@bloom/time/testing';
import fc from 'fast-check';
import { FLAG, missingFlags, ownFlags } from './flags.js';
import {
  Acceptor,
  challengeMessage,
  digest,
  framed,
  type Identity,
  Initiator,
  nameMessage,
  type Secrets,
  type Status,
  type Step,
} from './handshake.js';

const RUNS = fuzzRuns(process.env['BLOOM_NIGHTLY'] === undefined ? 4_000 : 1_000_000);

const a: Identity = { name: 'a@h', creation: 0x12345678, flags: ownFlags(false) };
const b: Identity = { name: 'b@h', creation: 7, flags: ownFlags(false) };
const secrets = (cookie = 'c', challenge = 123456789): Secrets => ({
  cookie: () => cookie,
  challenge: () => challenge,
});
const hex = (step: Step): string[] => step.send.map((bytes) => bytes.toString('hex'));
const text = (step: Step): string[] => step.send.map((bytes) => bytes.toString('latin1', 2));

/** Lets two machines talk, `cut` bytes at a time. */
function converse(initiator: Initiator, acceptor: Acceptor, cut = 1_000) {
  const steps: { side: 'initiator' | 'acceptor'; step: Step }[] = [];
  const pending: { to: 'initiator' | 'acceptor'; bytes: Buffer }[] = [];
  const carry = (side: 'initiator' | 'acceptor', step: Step): void => {
    steps.push({ side, step });
    const all = Buffer.concat(step.send);
    for (let at = 0; at < all.length; at += cut) {
      pending.push({ to: side === 'initiator' ? 'acceptor' : 'initiator', bytes: all.subarray(at, at + cut) });
    }
  };
  carry('initiator', initiator.start());
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    carry(next.to, (next.to === 'initiator' ? initiator : acceptor).data(next.bytes));
  }
  const end = (side: string) =>
    steps
      .filter((s) => s.side === side)
      .map((s) => s.step)
      .find((s) => s.up ?? s.failed);
  return { initiator: end('initiator'), acceptor: end('acceptor') };
}

describe('the encoding', () => {
  test('computes the digest as Erlang does', () => {
    expect(digest('c', 123456789).toString('hex')).toBe('eee113d44755c9a48ad47465b4d2da51');
    expect(digest('secret', 4294967295).toString('hex')).toBe('5dfd181e69aa587cc812eb333e6536b6');
  });

  test('encodes the first message as Erlang does', () => {
    expect(nameMessage(a).toString('hex')).toBe('4e0000000d075f5fbc123456780003614068');
    expect(hex(new Initiator(a, 'b@h', secrets()).start())).toEqual(['00124e0000000d075f5fbc123456780003614068']);
  });

  test('has the flags of a hidden and of a visible node', () => {
    expect(ownFlags(false)).toBe(0xd075f5fbcn);
    expect(ownFlags(true)).toBe(0xd075f5fbdn);
  });
});

describe('handshakes between two nodes of ours', () => {
  test.each([1, 2, 7, 1_000])('agrees between two nodes, however the bytes are split (%i at a time)', (cut) => {
    const result = converse(new Initiator(a, 'b@h', secrets()), new Acceptor(b, () => 'ok', secrets('c', 99)), cut);
    expect(result.initiator?.up?.remote).toEqual(b);
    expect(result.acceptor?.up?.remote).toEqual(a);
  });

  test('parts nodes with different cookies, of which only the checking side knows why', () => {
    const result = converse(new Initiator(a, 'b@h', secrets('wrong')), new Acceptor(b, () => 'ok', secrets()));
    expect(result.acceptor?.failed).toBe('bad_cookie');
    expect(result.acceptor?.send).toEqual([]);
    expect(result.initiator).toBeUndefined();
  });

  test("detects on the initiator's side an acceptor that does not know the cookie", () => {
    const initiator = new Initiator(a, 'b@h', secrets());
    initiator.data(framed(Buffer.from('sok')));
    initiator.data(framed(challengeMessage(b, 1)));
    expect(initiator.data(framed(Buffer.concat([Buffer.from('a'), digest('wrong', 123456789)]))).failed).toBe(
      'bad_cookie',
    );
  });

  test('keeps bytes that follow the last message', () => {
    const initiator = new Initiator(a, 'b@h', secrets());
    initiator.data(framed(Buffer.from('sok')));
    initiator.data(framed(challengeMessage(b, 1)));
    const last = framed(Buffer.concat([Buffer.from('a'), digest('c', 123456789)]));
    const step = initiator.data(Buffer.concat([last, Buffer.from([0, 0, 0, 0, 0])]));
    expect(step.up?.rest).toEqual(Buffer.from([0, 0, 0, 0, 0]));
  });
});

describe('the initiator', () => {
  test('accepts any node when it dialled no name, and reports the name of that node', () => {
    const initiator = new Initiator(a, undefined, secrets());
    expect(initiator.answered).toBeUndefined();
    const result = converse(initiator, new Acceptor(b, () => 'ok', secrets('c', 99)));
    expect(result.initiator?.up?.remote).toEqual(b);
    expect(initiator.answered).toEqual(b);
  });

  test('reports the node that answered even when its name or flags are wrong', () => {
    const old = { ...b, flags: b.flags & ~FLAG.unlinkId & ~FLAG.mandatory25 };
    for (const answer of [{ ...b, name: 'x@h' }, old]) {
      const initiator = new Initiator(a, 'b@h', secrets());
      initiator.data(framed(Buffer.from('sok')));
      expect(initiator.data(framed(challengeMessage(answer, 1))).failed).toBeDefined();
      expect(initiator.answered).toEqual(answer);
    }
    expect(missingFlags(old.flags)).toEqual(['unlinkId']);
    expect(missingFlags(b.flags)).toEqual([]);
  });

  const after = (...messages: (Buffer | string)[]): Step => {
    const initiator = new Initiator(a, 'b@h', secrets());
    initiator.start();
    let step: Step = { send: [] };
    for (const message of messages) step = initiator.data(framed(Buffer.from(message)));
    return step;
  };

  test.each([
    ['snok', 'nok'],
    ['snot_allowed', 'not_allowed'],
    ['snamed:xx', 'malformed'],
    ['xok', 'malformed'],
  ])('treats the status %s as %s', (status, failed) => {
    expect(after(status).failed).toBe(failed);
  });

  test('requests a new connection when the other side still has an old one', () => {
    expect(text(after('salive'))).toEqual(['strue']);
    expect(after('salive', challengeMessage(b, 1)).send).toHaveLength(1);
    expect(after('sok_simultaneous', challengeMessage(b, 1)).send).toHaveLength(1);
  });

  test('refuses a node with another name, and one that lacks required flags', () => {
    expect(after('sok', challengeMessage({ ...b, name: 'x@h' }, 1)).failed).toBe('name_mismatch');
    for (const flag of [FLAG.v4Nc, FLAG.unlinkId]) {
      expect(after('sok', challengeMessage({ ...b, flags: b.flags & ~flag }, 1)).failed).toBe('missing_flags');
    }
    // One bit implies all flags that OTP 25 requires.
    expect(
      after('sok', challengeMessage({ ...b, flags: FLAG.mandatory25 | FLAG.v4Nc | FLAG.unlinkId }, 1)).send,
    ).toHaveLength(1);
  });
});

describe('the acceptor', () => {
  const accept = (status: Status | undefined, message = nameMessage(a)): Step =>
    new Acceptor(b, () => status, secrets()).data(framed(message));

  test.each<Status>(['nok', 'not_allowed'])('answers %s and closes', (status) => {
    expect(accept(status)).toMatchObject({ failed: status });
    expect(text(accept(status))).toEqual([`s${status}`]);
  });

  test('closes without a status when the decision is undefined', () => {
    expect(accept(undefined)).toEqual({ failed: 'aborted', send: [] });
  });

  test('asks for confirmation before it replaces a connection', () => {
    const acceptor = new Acceptor(b, () => 'alive', secrets());
    expect(text(acceptor.data(framed(nameMessage(a))))).toEqual(['salive']);
    expect(acceptor.data(framed(Buffer.from('strue'))).send).toHaveLength(1);
    const other = new Acceptor(b, () => 'alive', secrets());
    other.data(framed(nameMessage(a)));
    expect(other.data(framed(Buffer.from('sfalse'))).failed).toBe('aborted');
  });

  test('gives a hidden node that asks for a name the one that was decided', () => {
    const given = { name: 'x_1@h', creation: 0x01020304 };
    const asking = { name: 'h', creation: 0, flags: a.flags | FLAG.nameMe };
    const acceptor = new Acceptor(b, () => given, secrets());
    const step = acceptor.data(framed(nameMessage(asking)));
    expect(hex(step)[0]).toBe('0012736e616d65643a0005785f31406801020304');
    expect((step.send[1] as Buffer).readBigUInt64BE(3)).toBe(b.flags | FLAG.nameMe);
    expect(acceptor.remote).toEqual({ ...given, flags: asking.flags });
  });

  test('refuses to name a visible node', () => {
    const acceptor = new Acceptor(b, () => ({ name: 'x_1@h', creation: 4 }), secrets());
    const visible = { ...a, flags: a.flags | FLAG.nameMe | FLAG.published };
    expect(text(acceptor.data(framed(nameMessage(visible))))).toEqual(['snot_allowed']);
  });

  test('refuses missing flags and the old form of the first message', () => {
    expect(text(accept('ok', nameMessage({ ...a, flags: a.flags & ~FLAG.v4Nc })))).toEqual(['snot_allowed']);
    expect(accept('ok', Buffer.from('6e000500000000614068', 'hex')).failed).toBe('malformed');
  });

  test('ignores bytes after the name and refuses long messages before they are complete', () => {
    expect(accept('ok', Buffer.concat([nameMessage(a), Buffer.from('more')])).send).toHaveLength(2);
    expect(new Acceptor(b, () => 'ok', secrets()).data(Buffer.from([0x04, 0x01])).failed).toBe('malformed');
    expect(new Acceptor(b, () => 'ok', secrets()).data(Buffer.from([0, 0])).failed).toBe('malformed');
  });
});

test('handles any bytes in any state without an exception', () => {
  const good = fc.constantFrom(
    nameMessage(a),
    challengeMessage(b, 1),
    ...['sok', 'salive', 'strue', 'snok'].map((s) => Buffer.from(s)),
    Buffer.concat([Buffer.from('r'), Buffer.alloc(4), digest('c', 123456789)]),
    Buffer.concat([Buffer.from('a'), digest('c', 123456789)]),
  );
  const edited = fc.tuple(good, fc.nat(), fc.nat(255)).map(([message, at, value]) => {
    const bytes = Buffer.from(message);
    bytes[at % bytes.length] = value;
    return bytes;
  });
  const piece = fc.oneof(
    good.map(framed),
    edited.map(framed),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => framed(Buffer.from(bytes))),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), fc.boolean(), (pieces, dial) => {
      const machine = dial ? new Initiator(a, 'b@h', secrets()) : new Acceptor(b, () => 'ok', secrets());
      for (const bytes of pieces) {
        const { failed, up } = machine.data(bytes);
        if (failed !== undefined || up !== undefined) break;
        expect(machine.heldBytes).toBeLessThanOrEqual(16 * 1024);
      }
    }),
    { numRuns: RUNS },
  );
}, 900_000);

test('does not keep the large chunk in which an incomplete message arrived', () => {
  const acceptor = new Acceptor(b, () => 'ok', secrets());
  acceptor.data(Buffer.concat([framed(nameMessage(a)), Buffer.from([0, 21, 114])]));
  const chunk = Buffer.alloc(64 * 1024);
  chunk[0] = 3;
  expect(acceptor.data(chunk.subarray(0, 5)).failed).toBeUndefined();
  expect(acceptor.heldBytes).toBe(8);
});
