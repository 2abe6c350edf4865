// What every RoomService guarantees: the real one, and the one used by the tests of the HTTP face.
import { describe, expect, test } from '@jest/globals';
import { defaultRoomConfig, type RoomService } from '../room-service.js';

/** Runs the suite. `rooms` returns a service without rooms that disables components of type `rtsp`. */
export function roomServiceSuite(title: string, rooms: () => RoomService): void {
  const kitchen = { ...defaultRoomConfig, roomId: 'kitchen', maxPeers: 1 };

  describe(title, () => {
    test('creates a room, generates a missing id, and refuses a second room with the same id', async () => {
      const { room, address } = await rooms().createRoom(kitchen);
      expect(room).toEqual({ id: 'kitchen', config: kitchen, components: [], peers: [] });
      expect(address).not.toBe('');
      const other = await rooms().createRoom(defaultRoomConfig);
      expect(other.room.config.roomId).toBe(other.room.id);
      expect((await rooms().listRooms('local')).rooms).toEqual([room, other.room]);
      await expect(rooms().createRoom(kitchen)).rejects.toMatchObject({
        code: 'ROOM_EXISTS',
        message: 'Cannot add room with id "kitchen" - room already exists',
      });
    });

    test('reports an unknown room as not found in every call', async () => {
      const missing = { code: 'ROOM_NOT_FOUND', message: 'Room attic does not exist' };
      const service = rooms();
      await expect(service.getRoom('attic')).rejects.toMatchObject(missing);
      await expect(service.deleteRoom('attic')).rejects.toMatchObject(missing);
      await expect(service.addPeer('attic', {})).rejects.toMatchObject(missing);
      await expect(service.describedPeers('attic')).rejects.toMatchObject(missing);
      await expect(service.peersWithClient('attic', 'whip')).rejects.toMatchObject(missing);
      await expect(service.removePeer('attic', 'x')).rejects.toMatchObject(missing);
      await expect(service.addComponent('attic', 'hls', {})).rejects.toMatchObject(missing);
      await expect(service.removeComponent('attic', 'x')).rejects.toMatchObject(missing);
      await expect(service.subscribeComponent('attic', 'x', [])).rejects.toMatchObject(missing);
      await expect(service.dial('attic', 'x', '1')).rejects.toMatchObject(missing);
      await expect(service.hangUp('attic', 'x')).rejects.toMatchObject(missing);
    });

    test('adds peers up to the limit, which is checked before their options, and removes them', async () => {
      await rooms().createRoom(kitchen);
      const { peer, token, websocketUrl } = await rooms().addPeer('kitchen', { enableSimulcast: true });
      expect(peer).toEqual({ id: peer.id, type: 'webrtc', status: 'disconnected', tracks: [], metadata: null });
      expect(token).not.toBe('');
      expect(websocketUrl).toMatch(/\/socket\/peer\/websocket$/);
      await expect(rooms().addPeer('kitchen', 'no options')).rejects.toMatchObject({
        code: 'PEER_LIMIT',
        message: 'Reached peer limit in room kitchen',
      });
      await rooms().removePeer('kitchen', peer.id);
      await expect(rooms().removePeer('kitchen', peer.id)).rejects.toMatchObject({
        code: 'PEER_NOT_FOUND',
        message: `Peer ${peer.id} does not exist`,
      });
      for (const options of [[], 'text', { enableSimulcast: 1 }]) {
        await expect(rooms().addPeer('kitchen', options)).rejects.toMatchObject({
          code: 'INVALID_OPTIONS',
          message: 'Invalid request body structure',
        });
      }
      expect((await rooms().getRoom('kitchen')).peers).toEqual([]);
      await rooms().addPeer('kitchen', null);
    });

    test('refuses components of a disabled kind, and reports an unknown component as not found', async () => {
      await rooms().createRoom(kitchen);
      await expect(rooms().addComponent('kitchen', 'rtsp', {})).rejects.toMatchObject({
        code: 'COMPONENT_TYPE_DISABLED',
        message: 'Components of type rtsp are disabled',
      });
      const missing = { code: 'COMPONENT_NOT_FOUND', message: 'Component x does not exist' };
      await expect(rooms().removeComponent('kitchen', 'x')).rejects.toMatchObject(missing);
      await expect(rooms().subscribeComponent('kitchen', 'x', [])).rejects.toMatchObject(missing);
      await expect(rooms().dial('kitchen', 'x', '1')).rejects.toMatchObject(missing);
      await expect(rooms().hangUp('kitchen', 'x')).rejects.toMatchObject(missing);
    });

    test('deletes a room and frees its id', async () => {
      await rooms().createRoom(kitchen);
      await rooms().deleteRoom('kitchen');
      await expect(rooms().getRoom('kitchen')).rejects.toMatchObject({ code: 'ROOM_NOT_FOUND' });
      await rooms().createRoom(kitchen);
    });

    test('refuses a peer whose token it did not issue', async () => {
      const socket = { send: () => undefined, close: () => undefined, ping: async () => true };
      expect(await rooms().attachPeer('no token', socket)).toBe('invalid token');
    });
  });
}
