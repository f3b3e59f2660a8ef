/** Values kept in this browser. Without storage they last for the visit. */

const forThisVisit = new Map();

export function stored(key, fallback) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? forThisVisit.get(key) ?? fallback;
  } catch {
    return forThisVisit.get(key) ?? fallback; // storage is disabled, or another program wrote the value
  }
}

export function store(key, value) {
  forThisVisit.set(key, value);
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Storage is disabled or full.
  }
}
