import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { root } from '../setup.mjs';

test('distinguishes a fixed fault from one that remains, and names the code that can go', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bloom-werift-'));
  try {
    cpSync(join(root, 'node_modules', 'werift-sctp'), folder, { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const file = join(folder, 'lib', 'sctp', 'src', 'sctp.js');
    const mended = readFileSync(file, 'utf8')
      .replace('!!chunk.maxRetransmits', 'chunk.maxRetransmits !== undefined')
      .replace('this.peerRwnd > 0)', '(this.peerRwnd > 0 || this.flightSize === 0))');
    writeFileSync(file, mended);
    const output = execFileSync(process.execPath, [join(root, 'scripts', 'check', 'werift-sctp.mjs'), folder], {
      encoding: 'utf8',
    });
    expect(output).toContain('fixed: retransmits a message that has no retransmissions');
    expect(output).toContain('shown: abandons the oldest message in flight');
    expect(output).toMatch(/'retransmits a message that has no .*; other rows still need abandonIfDue/);
    expect(output).toMatch(/'sends nothing into a closed window,.* and the condition on peerRwnd in transmitQuickly/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
