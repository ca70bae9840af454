import { expect, it, onTestFinished, vi } from 'vitest';
import { parseConfig } from '../../src/config/file.ts';

it('a mapping that is a key, as of a placeholder that nobody has filled in, is no warning of the process that quotes it', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  onTestFinished(() => warned.mockRestore());
  await parseConfig('credentials:\n  - name: {{ hunter2 }}\n', 'file.yaml', []);
  expect(warned).not.toHaveBeenCalled();
});
