/** Which connection is given up for a further one. */

import { EventEmitter } from 'node:events';
import type { Server, Socket } from 'node:net';
import { expect, it } from 'vitest';
import { boundConnections } from '../../src/issuer/token-listener.ts';
import { captureLog } from '../support/log-capture.ts';

function bounded(most: number) {
  const server = new EventEmitter();
  let displaced = 0;
  const { log, lines } = captureLog();
  const bound = boundConnections(server as unknown as Server, { most, onDisplaced: () => displaced++, log });
  const given: string[] = [];
  return {
    ...bound,
    given,
    displaced: () => displaced,
    lines,
    connect(remoteAddress: string | undefined, name: string): Socket {
      const socket = Object.assign(new EventEmitter(), {
        remoteAddress,
        destroy() {
          given.push(name);
          socket.emit('close');
        },
      });
      server.emit('connection', socket);
      return socket as unknown as Socket;
    },
  };
}

it('no connection is closed up to the bound', () => {
  const { connect, given } = bounded(2);
  const first = connect('a', 'a1');
  connect('a', 'a2');
  first.emit('close');
  connect('a', 'a3');
  expect(given).toEqual([]);
});

it('above the bound, the connection of the busiest address that was answered longest ago is closed', () => {
  const { connect, begun, answered, displaced, given, lines } = bounded(5);
  connect('b', 'b1');
  connect('b', 'b2');
  const first = connect('a', 'a1');
  for (const name of ['a2', 'a3']) connect('a', name);
  begun(first);
  answered(first);
  connect('c', 'c1');
  connect('c', 'c2');
  expect(given).toEqual(['a2', 'b1']);
  expect(displaced()).toBe(2);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'warn', address: 'a' },
    { level: 'warn', address: 'b' },
  ]);
});

it('two of the same /64 count as one address', () => {
  const { connect, given } = bounded(3);
  connect('192.0.2.1', 'v4');
  connect('2001:db8::1', 'v6-1');
  connect('2001:db8::2', 'v6-2');
  connect('192.0.2.2', 'newcomer');
  expect(given).toEqual(['v6-1']);
});

it('a connection that is being answered stays while another of its address is idle', () => {
  const { connect, begun, answered, given } = bounded(2);
  const [busy, idle] = [connect('a', 'busy'), connect('a', 'idle')];
  begun(busy);
  connect('a', 'new');
  expect(given).toEqual(['idle']);
  // Two requests, one answered: still busy.
  begun(busy);
  answered(busy);
  connect('a', 'newer');
  expect(given).toEqual(['idle', 'new']);
  answered(busy);
  begun(idle);
  answered(idle);
  connect('a', 'newest');
  expect(given).toEqual(['idle', 'new', 'newer']);
  connect('a', 'last');
  expect(given).toEqual(['idle', 'new', 'newer', 'busy']);
});

it('if all are being answered, the newcomer of the busiest address is closed', () => {
  const { connect, begun, given } = bounded(2);
  for (const name of ['one', 'two']) begun(connect('a', name));
  connect('a', 'three');
  expect(given).toEqual(['three']);
});

it('if all of the busiest address are being answered, its oldest is closed for a newcomer from elsewhere', () => {
  const { connect, begun, given } = bounded(2);
  for (const name of ['one', 'two']) begun(connect('a', name));
  connect('b', 'newcomer');
  expect(given).toEqual(['one']);
});

it('if no address has more, an idle connection is closed, else the newcomer', () => {
  const { connect, begun, given } = bounded(3);
  for (const name of ['a1', 'a2']) begun(connect('a', name));
  connect('b', 'b1');
  begun(connect('b', 'b2'));
  expect(given).toEqual(['b1']);
  connect('b', 'b3');
  expect(given).toEqual(['b1', 'b3']);
});

it('a connection whose address is unknown counts like others', () => {
  const { connect, given } = bounded(1);
  connect(undefined, 'gone');
  connect('a', 'newcomer');
  expect(given).toHaveLength(1);
});
