/** Which connection gives way when there are as many as may be. */

import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { boundCallerConnections } from '../../src/callers/caller-connections.ts';
import { captureLog } from '../support/log-capture.ts';

function bounded() {
  const given: string[] = [];
  const dropped: string[] = [];
  let port = 0;
  const connections = boundCallerConnections({
    most: 256,
    onDropped: (reason) => dropped.push(reason),
    log: captureLog().log,
  });
  return {
    ...connections,
    given,
    dropped,
    connect(remoteAddress: string | undefined, name = ''): Socket {
      const socket = Object.assign(new EventEmitter(), {
        remoteAddress,
        remotePort: ++port,
        destroy() {
          given.push(name);
          socket.emit('close');
        },
      }) as unknown as Socket;
      connections.admit(socket);
      return socket;
    },
  };
}

it('an idle connection is closed before a busy one, though it was used later', () => {
  const { connect, begin, end, given, dropped } = bounded();
  const all = Array.from({ length: 256 }, (_, index) => connect('a', `a${index}`));
  const [busy, ...others] = all as [Socket, ...Socket[]];
  expect(begin(busy)).toBe(true);
  for (const socket of others) {
    begin(socket);
    end(socket);
  }
  connect('b', 'newcomer');
  expect([given, dropped]).toEqual([['a1'], ['displaced']]);
});

it('if all are busy, the one that is busy longest, of the address with most, is closed', () => {
  const { connect, begin, given } = bounded();
  const few = Array.from({ length: 100 }, (_, index) => connect('few', `few${index}`));
  const many = Array.from({ length: 156 }, (_, index) => connect('many', `many${index}`));
  for (const socket of [...few, ...many]) begin(socket);
  connect('few', 'newcomer');
  expect(given).toEqual(['many0']);
});

it('a closed connection makes room, and one without an address is not counted', () => {
  const { connect, given, dropped } = bounded();
  connect(undefined, 'gone');
  expect(given).toEqual(['gone']);
  for (let index = 0; index < 300; index++) connect('a', 'closed').emit('close');
  for (let index = 0; index < 256; index++) connect('a', 'open');
  expect([given, dropped]).toEqual([['gone'], []]);
});
