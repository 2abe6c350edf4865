import { printTable } from '../report.js';
import { bloom } from '../sfu/servers/bloom.js';
import { figuresAt, row } from './figures.js';
import { Rooms, type Shape } from './rooms.js';

/** Sends the same number of packets to ever more subscribers in one room, and from ever more rooms. */
export async function scale(base: Shape, nodeFlags: string[]): Promise<void> {
  const out = 20_000;
  const shapes = [
    ...[10, 50, 100, 200].map((subscribers) => ({ ...base, rooms: 1, subscribers })),
    ...[5, 10, 20].map((rooms) => ({ ...base, rooms, subscribers: 100 / rooms })),
  ];
  const rows: Record<string, string | number>[] = [];
  for (const shape of shapes) {
    const server = await bloom({ workers: 1, nodeFlags }).start(shape.kind);
    const rooms = new Rooms(server, shape);
    try {
      await rooms.open();
      rows.push({ rooms: shape.rooms, 'subscribers each': shape.subscribers, ...row(await figuresAt(rooms, out)) });
      process.stderr.write(`${JSON.stringify(rows.at(-1))}\n`);
    } finally {
      await rooms.close();
      await server.close();
    }
  }
  printTable(`the same ${out} packets/s out of one media worker`, rows);
}
