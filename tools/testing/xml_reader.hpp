// tools/testing/xml_reader.hpp: XML as a tree, for tests: refuses whatever is not well-formed.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <expat.h>

namespace kvo::tools {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes = {};
  std::string text = {};
  std::vector<XmlElement> children = {};
};

/// The root element. Throws std::runtime_error for text that is not well-formed XML 1.0 in UTF-8.
inline XmlElement read_xml(const std::string& text) {
  XmlElement top;
  std::vector<XmlElement*> open{&top};
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreate("UTF-8"),
                                                                       XML_ParserFree);
  XML_SetUserData(parser.get(), &open);
  using Open = std::vector<XmlElement*>;
  XML_SetElementHandler(
      parser.get(),
      [](void* data, const XML_Char* name, const XML_Char** attributes) {
        auto& path = *static_cast<Open*>(data);
        XmlElement& element = path.back()->children.emplace_back(XmlElement{name});
        for (; *attributes != nullptr; attributes += 2)
          element.attributes[attributes[0]] = attributes[1];
        path.push_back(&element);
      },
      [](void* data, const XML_Char*) { static_cast<Open*>(data)->pop_back(); });
  XML_SetCharacterDataHandler(parser.get(), [](void* data, const XML_Char* part, int size) {
    static_cast<Open*>(data)->back()->text.append(part, static_cast<std::size_t>(size));
  });
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), 1) != XML_STATUS_OK)
    throw std::runtime_error(XML_ErrorString(XML_GetErrorCode(parser.get())));
  return top.children.at(0);
}

}  // namespace kvo::tools
