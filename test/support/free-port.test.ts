import { expect, it, vi } from 'vitest';
import { freePort } from './free-port.ts';

it('gives a port once, whatever chance says', async () => {
  const chance = vi.spyOn(Math, 'random').mockReturnValueOnce(0.5).mockReturnValueOnce(0.5);
  try {
    const ports = [await freePort(), await freePort()];
    expect(new Set(ports).size).toBe(2);
  } finally {
    chance.mockRestore();
  }
});
