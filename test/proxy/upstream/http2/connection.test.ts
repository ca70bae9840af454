import { describe, expect, it } from 'vitest';
import { ANSWER, carried, connect, FIELDS, SETTINGS, WINDOW } from './bare-connection.ts';

function unforeseen(): never {
  throw new Error('unforeseen');
}

describe('an internal fault fails the requests of an HTTP/2 upstream connection and closes it', () => {
  it.each([
    ['an answer is passed on', { answerCame: unforeseen }, SETTINGS + ANSWER],
    ['all of a piece has been', { pieceEnded: unforeseen }, SETTINGS + ANSWER],
    ['a window opens', { sendWaiting: unforeseen }, SETTINGS + WINDOW],
  ])('when it happens as %s', (_, wrong, hex) => {
    const { connection, socket, told, bring } = connect();
    const [faulty, neighbour] = [carried(wrong), carried()];
    for (const { stream } of [faulty, neighbour]) {
      connection.lend(stream);
      connection.outlet.request(stream, FIELDS, 'ordinary', false);
    }
    connection.outlet.wait(faulty.stream);

    bring(hex);

    for (const { failures } of [faulty, neighbour])
      expect(failures).toEqual([[expect.objectContaining({ code: 'internal' }), false]]);
    expect([socket.destroyed, told]).toEqual([true, ['gone', 'closed']]);
  });

  it('when it happens as the socket takes more', () => {
    const { connection, socket } = connect();
    const { stream, failures } = carried({ sendWaiting: unforeseen });
    connection.lend(stream);
    connection.outlet.wait(stream);

    socket.emit('drain');

    expect(failures).toHaveLength(1);
    expect(socket.destroyed).toBe(true);
  });
});
