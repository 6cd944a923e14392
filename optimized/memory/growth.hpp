// optimized/memory/growth.hpp: lists that get room before anything is changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

namespace kvo::optimized {

/// Room for `more` elements behind those that a list has, at least doubled where it grows: a list
/// that came to its size needs no memory again. Throws std::bad_alloc or std::length_error; the
/// elements are as before then.
template <class T>
void make_room(std::vector<T>& list, std::size_t more) {
  if (list.capacity() - list.size() >= more) return;
  if (more > list.max_size() - list.size()) throw std::bad_alloc();
  list.reserve(std::max(list.size() + more, std::min(2 * list.capacity(), list.max_size())));
}

}  // namespace kvo::optimized
