// Receives every event of one room. Start it, then look at what the node sends.
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { BloomClient, BloomMessageError, parseWebhook } from '@bloom/server-sdk';

const { BLOOM_URL = 'http://127.0.0.1:5002', BLOOM_TOKEN = 'development', PORT = '3000' } = process.env;
// The node's JF_WEBHOOK_SECRET. Without it, anybody who reaches this server can forge events.
const { BLOOM_WEBHOOK_SECRET: secret } = process.env;
const bloom = new BloomClient({ url: BLOOM_URL, token: BLOOM_TOKEN });

const server = createServer(async (request, response) => {
  try {
    const timedSignature = request.headers['x-bloom-timed-signature'];
    const event = parseWebhook(await buffer(request), secret && { secret, timedSignature });
    if (event !== undefined) console.log(event.type, event);
    response.end(); // any 2xx lets the node send the next event
  } catch (error) {
    response.writeHead(error instanceof BloomMessageError ? 400 : 500).end(error.message);
  }
});

server.listen(Number(PORT), '127.0.0.1', async () => {
  const webhookUrl = `http://127.0.0.1:${server.address().port}/`;
  console.log(`Waiting at ${webhookUrl}`);
  const { room } = await bloom.createRoom({ webhookUrl });
  const { peer } = await bloom.addPeer(room.id);
  await bloom.deletePeer(room.id, peer.id);
  await bloom.deleteRoom(room.id);
});
