import { openRoom } from './bloom.js';
import { Call } from './call.jsx';

export const dynamic = 'force-dynamic'; // the room changes all the time

export default async function Page() {
  const { peers } = await openRoom();
  return (
    <main>
      <h1>Call</h1>
      <p>In the room when this page was made: {peers.length}</p>
      <Call />
    </main>
  );
}
