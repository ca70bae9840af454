import { expect, it } from 'vitest';
import { defineClients } from '../../src/issuer/clients.ts';

it('clients defined in a program are a set', () => {
  const clients = defineClients([
    { clientId: 'shop', clientSecret: 'x' },
    { clientId: 'bank', clientSecret: 'y' },
  ]);
  expect(clients.size).toBe(2);
  expect(clients.find('shop')).toMatchObject({ clientId: 'shop' });
  expect(clients.find('nobody')).toBeUndefined();
});

it('all problems of all clients are reported together', () => {
  const definitions = [
    { clientId: '', clientSecret: 'x' },
    { clientId: 'a', clientSecret: 'x' },
    { clientId: 'b' },
  ];
  expect(() => defineClients(definitions)).toThrow(
    expect.objectContaining({
      problems: [
        expect.objectContaining({ key: 'clients[0].clientId' }),
        expect.objectContaining({ key: 'clients[2].clientSecret' }),
      ],
    }),
  );
});
