import type { NamedAddress } from '../config/address-conflicts.ts';
import type { Config } from '../config/config.ts';
import { PROXY_SETTINGS, type ProxyValues } from '../config/proxy-settings.ts';
import type { Setting } from '../config/settings.ts';
import { sidecarListeners } from '../config/sidecar-listeners.ts';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';

/** Every listener of a sidecar or a gateway, with the key that named its address. */
export function namedListeners(config: Config, given: ProxyValues): NamedAddress[] {
  return sidecarListeners(config).map(({ key, flag, address, mayLack }) => ({
    key: flag === undefined ? key : namedBy(flag, key, address, given),
    address,
    ...(mayLack ? { mayLack } : {}),
  }));
}

/** The flag or its variable if one was given, or if nothing was: it is how to choose another address. */
function namedBy(
  flag: keyof typeof PROXY_SETTINGS,
  key: string,
  address: ListenAddress,
  given: ProxyValues,
): string {
  const setting: Setting = PROXY_SETTINGS[flag];
  const isDefault = [formatAddress(address), String(address.port)].includes(setting.default ?? '');
  return given[flag]?.key ?? (given.config === undefined || isDefault ? `--${flag}` : key);
}
