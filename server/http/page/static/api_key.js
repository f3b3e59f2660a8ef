/** API key of a server that requires one: kept in this browser, sent with every request. */

import { store, stored } from "./storage.js";

const KEY = "kvasir-api-key";

export function setApiKey(key) {
  store(KEY, key);
}

/** Returns the headers that carry the key. */
export function authorization() {
  const key = stored(KEY, "");
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Fetches with the key. */
export function fetchWithKey(path, options) {
  return fetch(path, { ...options, headers: { ...options.headers, ...authorization() } });
}

export const needsKey = (error) => ["missing_api_key", "invalid_api_key"].includes(error.code);
